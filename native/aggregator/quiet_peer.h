// Options of the sockets between members and aggregators.
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

namespace ncclrun::aggregator {

// Sends at once. A host that acknowledges nothing for the timeout (nanoseconds) ends the connection, whether something
// is on its way to it or not.
inline void prepareMemberSocket(int socket, uint64_t timeout) {
  const auto set = [socket](int level, int name, int value) { setsockopt(socket, level, name, &value, sizeof value); };
  const int milliseconds = int(std::clamp<uint64_t>(timeout / 1'000'000, 1'000, 1'000'000'000));
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds);
  set(IPPROTO_TCP, TCP_KEEPIDLE, std::max(milliseconds / 4'000, 1));
  set(IPPROTO_TCP, TCP_KEEPINTVL, std::max(milliseconds / 4'000, 1));
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

}  // namespace ncclrun::aggregator
