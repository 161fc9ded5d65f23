// The measurement of a job's network, for one rank of it.
#pragma once
#include <cstdint>
#include <span>

#include "base/error.h"
#include "ncclrun.h"

namespace ncclrun {

Status measureNetwork(std::span<const uint64_t> sizes, bool allNics, const ncclrunNetListener& listener);

}  // namespace ncclrun
