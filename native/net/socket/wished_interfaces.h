// NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY as this process has them. The plan's NICs follow what the agents have; a
// program that sets other values for itself, or for the ranks of one host, is told so.
#pragma once
#include <span>
#include <string_view>

#include "base/error.h"
#include "net/socket/socket_network.h"

namespace ncclrun::net {

// NCCL_SOCKET_IFNAME as a list: `eth,ib0` beginnings of names, `=eth0` whole names, `^docker` all others. As
// worker/topology/interface-names.ts.
bool admitsInterface(std::string_view list, std::string_view name);

// An error where the variables do not admit one of the devices. Loopback, and a device that is no interface of this
// host, are not theirs to choose.
Status checkWishedInterfaces(std::span<const SocketDevice> devices);

}  // namespace ncclrun::net
