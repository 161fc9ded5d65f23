// How many blocks the launches of a communicator have, where a process has several communicators on a GPU. Kernels wait
// for those of peers, and a block keeps its multiprocessor (SM) while it waits. If launches of few communicators took
// all of them, ranks that call their communicators in different orders would wait for each other for ever.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>

#include "dl/gpu.h"

namespace ncclrun::cuda {

// The blocks that each of a GPU's communicators always has: all of theirs are half of the GPU, whose other half is for
// the one that launches first.
uint32_t guaranteedBlocks(uint32_t multiprocessors, uint32_t communicators);

// A communicator's, as long as its kernels may run.
class MultiprocessorShare {
 public:
  // `ended`: whether all has ended that the communicator launched outside captures; asked by threads of the GPU's other
  // communicators too, in the GPU's context.
  MultiprocessorShare(const Gpu& gpu, std::function<bool()> ended);
  ~MultiprocessorShare();
  MultiprocessorShare(const MultiprocessorShare&) = delete;
  MultiprocessorShare& operator=(const MultiprocessorShare&) = delete;

  // Blocks for the next launch, which has work for `wanted` and gets on with `least` of them: all that it wants, if
  // with them every other communicator of the GPU still has its guaranteed ones. They are held until the launch has
  // ended; those of a captured launch, which runs unseen, as long as the communicator is there. By the thread that
  // launches.
  uint32_t take(uint32_t wanted, uint32_t least, bool captured);
  // Whether others may soon ask if what was launched has ended.
  bool isWatched() const;
  // From now on `ended` speaks of all that was launched.
  void told() { told_ = launched_ >> kBlockBits; }

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
  // Blocks of the largest launch that may be under way, below a count of the launches: whoever finds that one has ended
  // must not take the next one for it.
  std::atomic<uint64_t> launched_{0}, told_{0};
  std::atomic<uint32_t> captured_{0};  // of the largest one in a graph
};

}  // namespace ncclrun::cuda
