// What the kernel has counted of a TCP connection.
#pragma once
#include <optional>

#include "net/net.h"

namespace ncclrun::net {

// None: the kernel does not say (Linux before 4.10).
std::optional<Traffic> tcpTraffic(int socket);

}  // namespace ncclrun::net
