// One GPU of this process, and being there.
#pragma once
#include <cstdint>

#include "dl/cuda.h"

namespace ncclrun::cuda {

struct Gpu {
  Context context = nullptr;
  Device device = 0;  // as the runtime numbers it
  uint64_t busId = 0;
  uint32_t sms = 0;
};

// The GPU that the calling thread uses: of its current context, else device 0, which becomes current.
Status currentGpu(Gpu& out);

// Makes the GPU's context current while it lives. What the driver is asked for meanwhile does not disturb captures of
// other threads.
class OnGpu {
 public:
  explicit OnGpu(const Gpu& gpu);
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  bool pushed_ = false;
  int captureMode_;
};

}  // namespace ncclrun::cuda
