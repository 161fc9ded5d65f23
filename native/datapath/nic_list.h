// The NICs of a plan, for programs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "ncclrun.h"

namespace ncclrun {

// Writes as many NICs of the host as `out` has room for; `count` is how many there are. ncclInvalidArgument if the plan
// has no such host.
Status listNics(std::span<const std::byte> plan, uint32_t host, std::span<ncclrunNic> out, size_t& count);

}  // namespace ncclrun
