// ncclConfig_t as a caller of any version passes it.
#pragma once
#include <cstdint>
#include <string>

#include "base/error.h"
#include "nccl.h"

namespace ncclrun {

struct CommSettings {
  bool blocking = true;
  uint32_t maxChannels = 0;  // of a launch on a GPU, whose blocks they are; 0: as many as the plan likes
  std::string name;          // of the communicator, in reports; may be empty
};

// Checks what the caller gave (null: nothing) and changes in `settings` what it sets; NCCL_MAX_CTAS in the environment
// comes before config.maxCTAs, and NCCLRUN_MAX_SMS bounds both. The other fields that steer kernels and the network are
// checked and have no effect.
Status readConfig(const ncclConfig_t* config, CommSettings& settings);

}  // namespace ncclrun
