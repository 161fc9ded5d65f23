// Limits the blocks of a communicator's launches, where a process has several communicators on a GPU. Kernels wait for
// those of peers, and a block keeps its SM while it waits. If launches of few communicators took all SMs, ranks that
// call their communicators in different orders would deadlock.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>

#include "dl/gpu.h"

namespace ncclrun::cuda {

// Blocks that each of a GPU's communicators always gets: together half of the GPU, whose other half goes to the one
// that launches first.
uint32_t guaranteedBlocks(uint32_t sms, uint32_t communicators);

// The share of one communicator, as long as its kernels may run.
class SmShare {
 public:
  // `ended`: true if all launches of the communicator outside captures have ended; threads of the GPU's other
  // communicators call it too, in the GPU's context.
  SmShare(const Gpu& gpu, std::function<bool()> ended);
  ~SmShare();
  SmShare(const SmShare&) = delete;
  SmShare& operator=(const SmShare&) = delete;

  // Blocks for the next launch, which has work for `wanted` and needs at least `min`: all that it wants, if every other
  // communicator of the GPU still gets its guaranteed ones. They are held until the launch has ended; those of a
  // captured launch, whose replays are not seen, as long as the communicator lives. Called by the launching thread.
  uint32_t take(uint32_t wanted, uint32_t min, bool captured);
  // True if other communicators may soon ask whether the launches have ended.
  bool isWatched() const;
  // From now on `ended` covers all launches so far.
  void coverLaunches() { coveredLaunches_ = launched_ >> kBlockBits; }

 private:
  static constexpr uint32_t kBlockBits = 16;
  static constexpr uint64_t kBlocks = (1u << kBlockBits) - 1;
  struct OfGpu;
  static OfGpu& ofGpu(Device device);
  void hold(uint32_t blocks, bool captured);
  uint32_t held(uint32_t guaranteed);

  const Gpu gpu_;
  const std::function<bool()> ended_;
  OfGpu& all_;
  // Blocks of the largest launch that may be running, in the bits below a count of the launches, so that a thread that
  // finds one launch ended does not mistake the next one for it.
  std::atomic<uint64_t> launched_{0}, coveredLaunches_{0};
  std::atomic<uint32_t> captured_{0};  // of the largest captured launch
};

}  // namespace ncclrun::cuda
