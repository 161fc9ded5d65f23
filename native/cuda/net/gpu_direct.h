// GPUDirect of one rank: which devices of its network move data of its GPU's memory without the host's. The plan says
// which are near enough, the backend which can, and a loop test proves it.
#pragma once
#include <cstdint>
#include <vector>

#include "dl/gpu.h"
#include "net/net.h"
#include "plan/plan_view.h"

namespace ncclrun::cuda {

class GpuDirect {
 public:
  struct Use {
    bool receives = false;
    bool sends = false;
    bool flushes = false;   // what is received has to be flushed before the GPU reads it
    bool byDmaBuf = false;  // memory is registered through its dma-buf
  };
  // Tests devices that this process has not tested with the GPU before, and logs what each is used for, and why it is
  // not. The GPU is current.
  void decide(const Gpu& gpu, const PlanView& plan, uint32_t rank, net::Network& network);

  Use of(uint32_t device) const { return device < uses_.size() ? uses_[device] : Use(); }
  bool any() const;

 private:
  std::vector<Use> uses_;  // by device
};

}  // namespace ncclrun::cuda
