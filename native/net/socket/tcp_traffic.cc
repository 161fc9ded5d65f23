// The C library's tcp_info ends before the counters: the kernel's own goes with no other header of TCP.
#include "net/socket/tcp_traffic.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

namespace ncclrun::net {

std::optional<Traffic> tcpTraffic(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_rwnd_limited) + sizeof info.tcpi_rwnd_limited;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || length < kNeeded) return {};
  const uint64_t busy = info.tcpi_busy_time - std::min(info.tcpi_busy_time, info.tcpi_rwnd_limited);
  return Traffic{
      .bytes = info.tcpi_bytes_acked, .busyNanoseconds = busy * 1000, .retransmits = info.tcpi_total_retrans};
}

}  // namespace ncclrun::net
