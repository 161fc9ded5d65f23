// The NICs of a plan, for programs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "ncclrun.h"

namespace ncclrun {

// "network IB, NICs: mlx5_0 port 1 (fe80::1, 400 Gb/s)": those of the plan's own host. Empty where no connection uses a
// network.
std::string describeNetwork(std::span<const std::byte> plan);

// Writes as many NICs of the host as `out` has room for; `count` is how many there are. ncclInvalidArgument if the plan
// has no such host.
Status listNics(std::span<const std::byte> plan, uint32_t host, std::span<ncclrunNic> out, size_t& count);

}  // namespace ncclrun
