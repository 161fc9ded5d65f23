#include "net/socket/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <cstring>

namespace ncclrun::net {
namespace {

struct PackedHandle {
  uint32_t magic;
  uint16_t family;  // 4 or 6
  uint16_t port;
  uint64_t listener;
  uint8_t address[16];
};
static_assert(sizeof(PackedHandle) <= kHandleBytes);
constexpr uint32_t kHandleMagic = 0x4c48434e;  // "NCHL"

const sockaddr_in& ipv4(const Address& address) { return reinterpret_cast<const sockaddr_in&>(address.storage); }
sockaddr_in& ipv4(Address& address) { return reinterpret_cast<sockaddr_in&>(address.storage); }
const sockaddr_in6& ipv6(const Address& address) { return reinterpret_cast<const sockaddr_in6&>(address.storage); }
sockaddr_in6& ipv6(Address& address) { return reinterpret_cast<sockaddr_in6&>(address.storage); }

}  // namespace

uint16_t Address::port() const {
  return ntohs(storage.ss_family == AF_INET ? ipv4(*this).sin_port : ipv6(*this).sin6_port);
}

void Address::setPort(uint16_t port) {
  if (storage.ss_family == AF_INET) {
    ipv4(*this).sin_port = htons(port);
  } else {
    ipv6(*this).sin6_port = htons(port);
  }
}

bool Address::isLinkLocal() const {
  return storage.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ipv6(*this).sin6_addr);
}

uint32_t Address::scope() const {
  return storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_scope_id : 0;
}

void Address::setScope(uint32_t scope) { ipv6(*this).sin6_scope_id = scope; }

std::string Address::text() const {
  char name[NI_MAXHOST];
  if (getnameinfo(get(), length, name, sizeof name, nullptr, 0, NI_NUMERICHOST) != 0) return "an unknown address";
  return name;
}

std::string Address::textWithPort() const { return text() + " port " + std::to_string(port()); }

std::optional<Address> parseAddress(const std::string& text) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (text.empty() || getaddrinfo(text.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

std::string interfaceOf(const std::string& address) {
  ifaddrs* all = nullptr;
  const std::optional<Address> wanted = parseAddress(address);
  if (!wanted.has_value() || getifaddrs(&all) != 0) return {};
  std::string name;
  for (const ifaddrs* one = all; one != nullptr && name.empty(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != wanted->storage.ss_family) continue;
    Address candidate{.length = wanted->length};
    std::memcpy(&candidate.storage, one->ifa_addr, wanted->length);
    if (candidate.text() == wanted->text()) name = std::string(" (") + one->ifa_name + ")";
  }
  freeifaddrs(all);
  return name;
}

Handle encodeHandle(const ListenerAddress& where) {
  PackedHandle packed{.magic = kHandleMagic,
                      .family = uint16_t(where.address.storage.ss_family == AF_INET ? 4 : 6),
                      .port = where.address.port(),
                      .listener = where.listener,
                      .address = {}};
  if (packed.family == 4) {
    std::memcpy(packed.address, &ipv4(where.address).sin_addr, sizeof(in_addr));
  } else {
    std::memcpy(packed.address, &ipv6(where.address).sin6_addr, sizeof(in6_addr));
  }
  Handle handle = {};
  std::memcpy(handle.data(), &packed, sizeof packed);
  return handle;
}

std::optional<ListenerAddress> decodeHandle(const Handle& handle) {
  PackedHandle packed;
  std::memcpy(&packed, handle.data(), sizeof packed);
  if (packed.magic != kHandleMagic || (packed.family != 4 && packed.family != 6)) return std::nullopt;
  ListenerAddress where;
  where.listener = packed.listener;
  Address& address = where.address;
  if (packed.family == 4) {
    address.storage.ss_family = AF_INET;
    address.length = sizeof(sockaddr_in);
    std::memcpy(&ipv4(address).sin_addr, packed.address, sizeof(in_addr));
  } else {
    address.storage.ss_family = AF_INET6;
    address.length = sizeof(sockaddr_in6);
    std::memcpy(&ipv6(address).sin6_addr, packed.address, sizeof(in6_addr));
  }
  address.setPort(packed.port);
  return where;
}

}  // namespace ncclrun::net
