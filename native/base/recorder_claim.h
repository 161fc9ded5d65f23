// A communicator's index in the process's flight recorder (native/include/ncclrun.h).
#pragma once
#include <cstdint>

#include "ncclrun.h"

namespace ncclrun {

struct RecorderClaim {
  ncclrunRecorder* memory;  // never unmapped
  uint16_t index;
};

}  // namespace ncclrun
