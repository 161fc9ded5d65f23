// Single-step launches: a block has one item, and sends and receives at most two steps on each connection. The
// instructions dominate the time of small messages, not the bytes. So one lane per connection loads its state once, and
// no barrier stands between the steps.
//
// In an exchange, where every rank both sends to a peer and receives from it, receivers grant no credit. A rank that
// has received from a peer in this launch knows that the peer has finished the launches before, and so has read all
// steps sent there. A second step answers the first one, which its sender has read. (Launches of any length, which send
// further ahead, begin by granting that credit: ConnectionStore.) A one-way transfer has no answer: a connection has at
// most one step, and its receiver grants credit when it is due, as in launches of any length. The peer of a message may
// run such a launch.
//
// Over a network the slots are the proxies': the sender's lane tells its own of each step, and a receiver's grants
// credit in exchanges too, which tells its own proxy which slots are free. What the peer has read, the proxy has sent.
#pragma once
#include "cuda/kernels/ll_steps.cuh"

namespace ncclrun::cuda {

// State of one connection, which all threads of the block read.
struct SingleStepConnection {
  char* slots[kMaxSingleSteps];  // by the number of the step in this launch
  uint32_t flag;                 // of the first step
};
struct SingleStepConnections : WaitState {
  SingleStepConnection receives[kMaxPeers];
  SingleStepConnection sends[kMaxPeers];
};

// Steps taken in this launch, by connection, in registers.
class SingleStepCounts {
 public:
  __device__ __forceinline__ uint32_t operator[](uint32_t i) const { return counts_ >> 2 * i & 3; }
  __device__ __forceinline__ void increment(uint32_t first, uint32_t count) {
    counts_ += (0x55555555u & ~(~0u << 2 * count)) << 2 * first;
  }

 private:
  static_assert(2 * (kMaxPeers - 1) < 32);
  uint32_t counts_ = 0;
};

// The counterpart of LLSteps for one part of an item. The lanes of the first warp own the receives, those of the second
// warp the sends.
template <uint32_t kProtocol, bool kOneWay>
class SingleStep {
 public:
  using Connections = SingleStepConnections;
  static constexpr bool kSingleStep = true;

  __device__ SingleStep(const Launch& launch, Connections& connections, const Item& item, uint32_t channel)
      : launch_(launch),
        connections_(connections),
        channel_(channel),
        receives_(threadIdx.x < 32),
        mine_(threadIdx.x % 32) {
    if (threadIdx.x == 32) connections.aborted = connections.reported = false;
    if (!receives_) __syncwarp();
    if (threadIdx.x >= 64 || mine_ >= (receives_ ? item.receiveCount : item.sendCount)) {
      mine_ = kNone;
    } else {
      peer_ = item.peers[mine_];
      state_ = loadPairConnection<kProtocol>(launch, channel, peer_, receives_);
      if (!receives_) awaitSlots(launch, connections, state_);
      SingleStepConnection& shared = (receives_ ? connections.receives : connections.sends)[mine_];
#pragma unroll
      for (uint32_t k = 0; k < kMaxSteps; k++)
        shared.slots[k] = state_.slots + ((state_.step + k) & (slots() - 1)) * slotBytes();
      shared.flag = state_.step + 1;
    }
    __syncthreads();
  }

  __device__ __forceinline__ uint32_t slots() const { return launch_.slots.lineSteps; }
  __device__ __forceinline__ uint32_t slotBytes() const { return llSlotBytes<kProtocol>(launch_); }

  // Flags and slots of the current step.
  __device__ __forceinline__ uint32_t receiveFlag(uint32_t i) const {
    return connections_.receives[i].flag + received_[i];
  }
  __device__ __forceinline__ uint32_t sendFlag(uint32_t i) const { return connections_.sends[i].flag + sent_[i]; }
  template <class T>
  __device__ __forceinline__ T* receiveSlot(uint32_t i) const {
    return reinterpret_cast<T*>(connections_.receives[i].slots[received_[i]]);
  }
  template <class T>
  __device__ __forceinline__ T* sendSlot(uint32_t i) const {
    return reinterpret_cast<T*>(connections_.sends[i].slots[sent_[i]]);
  }
  __device__ __forceinline__ bool isRenewalDue(uint32_t i) const { return isRenewed(sendFlag(i) - 1, slots()); }

  __device__ __forceinline__ bool awaitCredits(const Move&) const { return true; }
  __device__ __forceinline__ void announce(const Move& move, uint32_t bytes) const {
    if (receives_ || mine_ - move.to >= move.sendCount || state_.posts == nullptr) return;
    const uint32_t step = state_.step + sent_[mine_];
    storeVolatile(state_.posts + step % kMaxNetSteps, netPost(step, true, bytes));
  }
  __device__ __forceinline__ void post(const Move& move, uint32_t bytes) {
    const uint32_t first = receives_ ? move.from : move.to, count = receives_ ? move.receiveCount : move.sendCount;
    if (mine_ - first < count) state_.bytes += bytes;
    received_.increment(move.from, move.receiveCount);
    sent_.increment(move.to, move.sendCount);
  }

  // Called after the last move. No other thread reads what this writes. All of it happens before what the first thread
  // does next.
  __device__ __forceinline__ void finish() {
    if (mine_ != kNone) {
      if (receives_) {
        state_.step += received_[mine_];
      } else {
        if (!kOneWay && received_[mine_] > 0) state_.freed = state_.step + received_[mine_] - 1;
        state_.step += sent_[mine_];
      }
      storeConnection(launch_, pairState(launch_, channel_, peer_), receives_, state_);
    }
    __syncthreads();
    if (!receives_) return;
    // All threads have read.
    if (mine_ != kNone && (kOneWay || state_.isRemote != 0) && isCreditDue(received_[mine_]))
      storeCredit(state_.head, state_.step);
    __syncwarp();
  }

 private:
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint32_t kMaxSteps = kOneWay ? 1 : kMaxSingleSteps;

  // One of the last `taken` steps grants it.
  __device__ __forceinline__ bool isCreditDue(uint32_t taken) const {
    return (taken > 0 && cuda::isCreditDue(state_.step, slots())) ||
           (taken > 1 && cuda::isCreditDue(state_.step - 1, slots()));
  }
  // Waits for free slots. Only launches after those that grant credit need to wait.
  static __device__ __forceinline__ void awaitSlots(const Launch& launch, WaitState& waitState,
                                                    ConnectionState& connection) {
    const uint32_t last = connection.step + kMaxSteps - 1;
    if (reached(connection.freed + launch.slots.lineSteps, last + 1)) return;
    SpinWait spin(launch, waitState);
    awaitCredit(connection, last, launch.slots.lineSteps, spin);
  }

  const Launch& launch_;
  Connections& connections_;
  const uint32_t channel_;
  const bool receives_;
  uint32_t mine_;  // number of the connection that this thread owns
  uint32_t peer_ = 0;
  ConnectionState state_{};
  SingleStepCounts received_, sent_;
};
template <bool kOneWay>
struct SingleStepVariant {
  template <uint32_t kProtocol>
  using Of = SingleStep<kProtocol, kOneWay>;
};

}  // namespace ncclrun::cuda
