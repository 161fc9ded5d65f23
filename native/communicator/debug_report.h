// What NCCL_DEBUG=INFO says of a communicator that is ready: what its plan has chosen.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "datapath/data_path.h"

namespace ncclrun {

// When the parts of a communicator's setup began, by nowNanoseconds().
struct SetupTimes {
  uint64_t begun = 0;
  uint64_t planned = 0;  // the plan is there, connections begin
  uint64_t connected = 0;
};

// `who`: the rank, for the beginning of each line. To be called when the communicator is ready.
void logReady(const std::string& who, const DataPath& path, const SetupTimes& times);
// Which network the plan has for connections between hosts.
void logNetwork(const std::string& who, std::span<const std::byte> plan);

}  // namespace ncclrun
