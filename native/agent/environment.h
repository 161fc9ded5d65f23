// What ncclrun's agent gave this process in its environment.
#pragma once
#include <cstdint>
#include <string>

#include "base/error.h"
#include "nccl.h"

namespace ncclrun {

struct Environment {
  std::string agent;     // NCCLRUN_AGENT: path of the agent's socket; empty outside a job
  std::string jobId;     // NCCLRUN_JOB_ID
  int32_t jobRank = -1;  // NCCLRUN_RANK; -1 unknown
  int32_t jobSize = -1;  // NCCLRUN_SIZE; -1 unknown
};
Environment readEnvironment();

// NCCLRUN_UNIQUE_ID, NCCLRUN_SIZE and NCCLRUN_RANK together; an error names the variable that is missing or malformed.
Status readJob(ncclUniqueId& id, int& size, int& rank);

}  // namespace ncclrun
