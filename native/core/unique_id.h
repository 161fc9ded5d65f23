// The 128 bytes that name a communicator to be: u64 magic, u64 hash of the job id (0 outside a job), 16 random bytes,
// 96 zero bytes. The twin of what control/messages/bootstrap.ts says of a key.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/error.h"
#include "nccl.h"

namespace ncclrun {

inline constexpr uint64_t kUniqueIdMagic = 0x314e55524c43434e;  // "NCCLRUN1"

uint64_t hashJobId(std::string_view jobId);  // FNV-1a, 64 bits; 0 for none

// A fresh id of this process's job. ncclSystemError if the kernel gives no random bytes.
ncclResult_t makeUniqueId(ncclUniqueId& id);

// Success if the id was made by ncclrun, in this process's job or outside any.
Status checkUniqueId(const ncclUniqueId& id);

// What the telemetry page calls the communicator: the first 8 random bytes.
uint64_t shortName(const ncclUniqueId& id);

bool sameId(const ncclUniqueId& one, const ncclUniqueId& other);

}  // namespace ncclrun
