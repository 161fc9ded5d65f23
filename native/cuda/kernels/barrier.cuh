// The barrier kernel: one warp, whose lane i keeps both connections to the item's i-th peer in registers. A signal is a
// line of protocol LL without data.
#pragma once
#include "algorithm/direct.h"
#include "cuda/kernels/ll_steps.cuh"
#include "cuda/kernels/recording.cuh"

namespace ncclrun::cuda {

// The primitives of algorithm/work.h that a barrier needs.
class LanePrimitives {
 public:
  __device__ LanePrimitives(const Launch& launch, const Item& item, uint32_t channel, WaitState& waitState)
      : launch_(launch),
        waitState_(waitState),
        channel_(channel),
        has_(threadIdx.x < item.sendCount),
        peer_(has_ ? item.peers[threadIdx.x] : 0) {
    if (!has_) return;
    send_ = loadPairConnection<kProtocol>(launch_, channel_, peer_, false);
    receive_ = loadPairConnection<kProtocol>(launch_, channel_, peer_, true);
  }

  __device__ void signalAll() {
    if (!has_) return;
    SpinWait spin(launch_, waitState_);
    awaitCredit(send_, send_.step, launch_.slots.lineSteps, spin);
    storeLLLine(slotAt(send_), 0, send_.step + 1);
    send_.step++;
  }
  __device__ void awaitAll() {
    if (!has_) return;
    const uint4* const line = slotAt(receive_);
    const uint32_t flag = receive_.step + 1;
    for (SpinWait spin(launch_, waitState_); loadLLLine(line).w != flag && !spin.gaveUp();) continue;
    receive_.step++;
    if (isCreditDue(receive_.step, launch_.slots.lineSteps)) storeCredit(receive_.head, receive_.step);
  }
  __device__ void finish() const {
    if (!has_) return;
    storeConnection(launch_, pairState(launch_, channel_, peer_), false, send_);
    storeConnection(launch_, pairState(launch_, channel_, peer_), true, receive_);
  }

 private:
  static constexpr uint32_t kProtocol = 1;
  __device__ uint4* slotAt(const ConnectionState& connection) const {
    return reinterpret_cast<uint4*>(connection.slots +
                                    (connection.step & (launch_.slots.lineSteps - 1)) * launch_.slots.llStepBytes);
  }

  const Launch& launch_;
  WaitState& waitState_;
  const uint32_t channel_;
  const bool has_;
  const uint32_t peer_;
  ConnectionState send_, receive_;
};

__device__ __forceinline__ void runBarrier(const Launch& launch) {
  NCCLRUN_SHARED(WaitState, waitState);
  if (threadIdx.x >= 32) return;
  if (threadIdx.x == 0) waitState = {};
  __syncwarp();
  for (uint32_t i = 0; i < launch.itemCount; i++) {
    const Item& item = launch.items[i];
    if ((item.firstBlock % gridDim.x) != blockIdx.x) continue;
    beginRecord(launch, item, waitState);
    LanePrimitives primitives(launch, item, item.firstChannel % launch.slots.channels, waitState);
    Work work{};
    work.ranks = launch.ranks;
    flatBarrier(primitives, work);
    primitives.finish();
    __syncwarp();
    endRecord(waitState);
  }
  __syncwarp();
  if (threadIdx.x == 0) endBlock(launch, waitState);
}

}  // namespace ncclrun::cuda
