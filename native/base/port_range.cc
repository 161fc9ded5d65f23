#include "base/port_range.h"

#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "base/limits.h"
#include "base/variables.h"

namespace ncclrun {
namespace {

constexpr const char* kVariable = "NCCLRUN_PORT_RANGE";
constexpr uint16_t kFirstUnprivileged = 1024;

bool parsePort(std::string_view text, uint16_t& port) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && rest == end && port >= kFirstUnprivileged;
}

uint32_t numberIn(const char* name, uint32_t otherwise) {
  const std::string_view text = environmentVariable(name);
  uint32_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size() ? number : otherwise;
}

void setPort(sockaddr_storage& address, uint16_t port) {
  if (address.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
}

// A socket that is bound stays so after a listen() that failed: each attempt has its own.
Descriptor tryListen(const sockaddr_storage& address, socklen_t length, int flags, int backlog, bool reuses,
                     int& error) {
  Descriptor listener(::socket(address.ss_family, SOCK_STREAM | flags, 0));
  error = errno;
  if (!listener.valid()) return listener;
  const int on = 1, off = 0;
  if (address.ss_family == AF_INET6) setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (reuses) setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listens = ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
                       ::listen(listener.get(), backlog) == 0;
  error = listens ? 0 : errno;
  return listens ? std::move(listener) : Descriptor();
}

// The ranks of a host share the range evenly; processes that nobody has numbered begin where their ids say.
uint32_t ownStart(PortRange range) {
  const uint32_t ranks = numberIn("LOCAL_WORLD_SIZE", 0);
  const uint32_t rank = numberIn("NCCLRUN_LOCAL_RANK", ranks);
  if (rank >= ranks) return uint32_t(getpid()) % range.size();
  return uint32_t(uint64_t(rank) * range.size() / ranks);
}

std::string hostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && *name != '\0' ? name : "this host";
}

}  // namespace

bool parsePortRange(std::string_view text, PortRange& range) {
  range = {};
  if (text.empty()) return true;
  const size_t dash = text.find('-');
  PortRange read;
  if (dash == std::string_view::npos || !parsePort(text.substr(0, dash), read.first) ||
      !parsePort(text.substr(dash + 1), read.last) || read.first > read.last)
    return false;
  range = read;
  return true;
}

Descriptor listenWithin(sockaddr_storage address, socklen_t length, int flags, int backlog, PortRange range,
                        uint32_t start, uint16_t avoided, int& error) {
  setPort(address, 0);
  if (range.isSystems()) return tryListen(address, length, flags, backlog, false, error);
  // Connections of an earlier job may be in TIME_WAIT for a minute, and must not hold a port: addresses are reused,
  // which does not let two sockets listen on one.
  const auto tryPort = [&](uint16_t port) {
    setPort(address, port);
    return tryListen(address, length, flags, backlog, true, error);
  };
  error = EADDRINUSE;
  Descriptor listener;
  for (uint32_t i = 0; i < range.size() && error == EADDRINUSE; i++) {
    const auto port = uint16_t(range.first + (start + i) % range.size());
    if (port != avoided) listener = tryPort(port);
  }
  const bool mayTakeAvoided = avoided >= range.first && avoided <= range.last;
  if (error == EADDRINUSE && mayTakeAvoided) listener = tryPort(avoided);
  return listener;
}

Descriptor listenForHosts(const sockaddr_storage& address, socklen_t length, int flags, int backlog, int& error) {
  PortRange range;
  error = EINVAL;
  if (!parsePortRange(environmentVariable(kVariable), range)) return {};
  const uint32_t start = range.isSystems() ? 0 : ownStart(range);
  return listenWithin(address, length, flags, backlog, range, start, uint16_t(numberIn("MASTER_PORT", 0)), error);
}

std::string listenersBehind(int error) {
  const std::string text(environmentVariable(kVariable));
  PortRange range;
  if (!parsePortRange(text, range))
    return ": " + std::string(kVariable) + "=" + text + " is no range of ports from 1024 to 65535; write 20000-20999";
  if (error != EADDRINUSE || range.isSystems()) return portsBehind(error);
  const uint32_t ranks = numberIn("LOCAL_WORLD_SIZE", 1);
  return ": every port of " + text + " (--port-range) is in use on " + hostName() +
         "; a rank needs one for each communicator and one for each NIC that it uses, so " + std::to_string(ranks) +
         (ranks == 1 ? " rank" : " ranks") + " of a host need at least " + std::to_string(2 * ranks) +
         "; widen the range, or end what listens there (ss -ltnp shows it)";
}

uint16_t portOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace ncclrun
