// Which host this process is on, as far as processes that do without ncclrun can reach each other.
#pragma once
#include <cstdint>
#include <string>

namespace ncclrun {

// Of NCCL_HOSTID, or else of host name and boot id; and of the network namespace: a private agent's socket
// (private_agent.h) is not seen from another one. Never 0.
uint64_t hostIdentity();

// The kernel's, of this start of the host; empty where it does not say.
const std::string& bootId();

}  // namespace ncclrun
