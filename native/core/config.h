// ncclConfig_t as a caller of any version passes it.
#pragma once
#include "core/error.h"
#include "nccl.h"

namespace ncclrun {

struct CommSettings {
  bool blocking = true;
};

// Checks what the caller gave (null: nothing) and changes in `settings` what it sets. The fields that steer CUDA
// kernels and the network are checked and have no effect on the host device.
Status readConfig(const ncclConfig_t* config, CommSettings& settings);

}  // namespace ncclrun
