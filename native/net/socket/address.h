// Addresses of the socket backend: IPv4, and IPv6 with its scope.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "net/net.h"

namespace ncclrun::net {

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  uint16_t port() const;
  void setPort(uint16_t port);
  bool isLinkLocal() const;
  uint32_t scope() const;  // of an IPv6 address: the interface's index, 0 for none
  void setScope(uint32_t scope);
  // "10.0.0.2", "fe80::1%eth0"
  std::string text() const;
  // "10.0.0.2 port 4000"
  std::string textWithPort() const;
};

// "10.0.0.2", "fd00::2", "fe80::1%eth0"; nothing if it is no address, or its interface does not exist.
std::optional<Address> parseAddress(const std::string& text);

// " (eth0)" for the address of an interface of this host; else nothing.
std::string interfaceOf(const std::string& address);

// Where a listener is found: its address, and its number there.
struct ListenerAddress {
  Address address;
  uint64_t listener = 0;
};
Handle encodeHandle(const ListenerAddress& where);
// Nothing where the handle is not one of this backend.
std::optional<ListenerAddress> decodeHandle(const Handle& handle);

}  // namespace ncclrun::net
