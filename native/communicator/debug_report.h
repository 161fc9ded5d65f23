// What NCCL_DEBUG=INFO says of a communicator that is ready: what its plan has chosen.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "datapath/data_path.h"

namespace ncclrun {

// `who`: the rank, for the beginning of each line.
void logReady(const std::string& who, const DataPath& path);
// Which network the plan has for connections between hosts.
void logNetwork(const std::string& who, std::span<const std::byte> plan);

}  // namespace ncclrun
