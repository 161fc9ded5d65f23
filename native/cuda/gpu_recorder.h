// What kernels of one GPU need to write into the process's flight recorder (native/include/ncclrun.h): its memory as
// the GPU sees it, a counter of its replayed operations, and how its clock relates to the host's.
#pragma once
#include <cstdint>
#include <mutex>

#include "dl/gpu_memory.h"
#include "ncclrun.h"
#include "plan/launch_format.h"

namespace ncclrun::cuda {

class GpuRecorder {
 public:
  // Of this process and GPU, for as long as the process lives. Null: there is no recorder, its memory cannot be pinned,
  // or more GPUs than it has rings have one already. What the stream has is waited for.
  static GpuRecorder* of(const Gpu& gpu, ncclrunRecorder* memory, Stream stream);

  // The communicator's entries have stamps of this GPU from now on.
  void adopt(uint16_t communicator);
  // The GPU's clock was read at some moment between two of CLOCK_MONOTONIC.
  void readClock(uint64_t beforeNs, uint64_t gpuNs, uint64_t afterNs);
  // CLOCK_MONOTONIC of the last reading; 0: there was none.
  uint64_t lastReadNs();
  // Where kernels record. `counts`: of the communicator, in the GPU's memory; used by captured launches.
  RecorderAccess access(bool captured, uint32_t* counts, uint16_t communicator) const;

 private:
  GpuRecorder(ncclrunRecorder* memory, uint32_t index) : memory_(memory), index_(index) {}
  Status open(const Gpu& gpu, Stream stream);

  ncclrunRecorder* const memory_;
  const uint32_t index_;  // of the clock and the ring
  Pointer entries_ = 0, replays_ = 0;
  Memory taken_;
  std::mutex mutex_;  // of writers of the clock
};

}  // namespace ncclrun::cuda
