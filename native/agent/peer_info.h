// The facts of this process that its PeerInfo carries.
#pragma once
#include <optional>

#include "agent/config.h"
#include "agent/messages.h"
#include "base/error.h"
#include "dl/gpu.h"

namespace ncclrun {

// Facts of a rank, which lives on a GPU or on the host device. Hashes are salted with the communicator's id, so that
// they mean nothing outside it. `hostName` is the agent's name of this host; NCCL_HOSTID, if set, stands for name and
// boot id. `communicators`: that the process has on the GPU already.
PeerInfo describePeer(const ncclUniqueId& id, const std::string& hostName, uint16_t listenPort,
                      const std::optional<cuda::Gpu>& gpu = {}, const CommSettings& settings = {},
                      uint32_t communicators = 0);

// A TCP socket, IPv6 and IPv4, listening on a port of NCCLRUN_PORT_RANGE, or of the kernel's choice. The descriptor and
// its port, or the error.
Status listenForPeers(int& descriptor, uint16_t& port);

}  // namespace ncclrun
