// The 128 bytes that name a communicator to be: u64 magic, u64 hash of the job id (0 outside a job), 16 random bytes;
// then, of an id that leaves a process outside a job, where it can be joined: u64 host (host_identity.h), u32 user id,
// u32 0, 16 bytes session (session.h); zero bytes to the end. The twin of what control/messages/bootstrap.ts says of a
// key.
#pragma once
#include <cstdint>
#include <string_view>

#include "agent/session.h"
#include "base/error.h"
#include "nccl.h"

namespace ncclrun {

inline constexpr uint64_t kUniqueIdMagic = 0x314e55524c43434e;  // "NCCLRUN1"

uint64_t hashJobId(std::string_view jobId);  // FNV-1a, 64 bits; 0 for none

// A fresh id of this process's job, or for ranks of this process. ncclSystemError if the kernel gives no random bytes.
ncclResult_t makeUniqueId(ncclUniqueId& id);
// Adds what other processes need to know of it if ncclrun has not started this one. Errors likewise.
ncclResult_t addOrigin(ncclUniqueId& id);

// Success if the id was made by ncclrun, in this process's job or outside any. Without an agent in the environment it
// must be made outside any job, on this host, by this user and in this process's session, which is that of the first id
// that comes here.
Status checkUniqueId(const ncclUniqueId& id);

// What the telemetry page calls the communicator: the first 8 random bytes.
uint64_t shortName(const ncclUniqueId& id);

bool sameId(const ncclUniqueId& one, const ncclUniqueId& other);

}  // namespace ncclrun
