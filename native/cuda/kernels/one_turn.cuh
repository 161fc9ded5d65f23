// Launches of one turn: a block has one item, and sends and receives at most two steps on each connection. What is
// small is short of instructions, not of bytes: the ends are looked up once, by a lane for each, and nothing waits in
// between.
//
// Where every rank sends to a peer what it receives from it, an exchange, no credit is told. Who has received from a
// peer in this turn knows that the peer has left the turns before, and so has read all that was sent to it there; and a
// second step answers the first one, which its sender has read. (Launches of any length, which send further ahead,
// begin with telling it: EndStore.) One way there is no answer: a connection has at most one step, and its receiver
// tells credit when it is due, as in launches of any length. To these the other end of a message may belong.
#pragma once
#include "cuda/kernels/line_steps.cuh"

namespace ncclrun::cuda {

// An end of a connection, as all threads of the block look it up.
struct TurnEnd {
  char* slots[kMostStepsOfTurn];  // by the number of the step in this turn
  uint32_t flag;                  // of the first step
};
struct TurnEnds : Waits {
  TurnEnd receives[kMaxPeers];
  TurnEnd sends[kMaxPeers];
};

// By connection, in registers: how many steps of the turn have been taken.
class TurnCounts {
 public:
  __device__ __forceinline__ uint32_t operator[](uint32_t i) const { return counts_ >> 2 * i & 3; }
  __device__ __forceinline__ void increment(uint32_t first, uint32_t count) {
    counts_ += (0x55555555u & ~(~0u << 2 * count)) << 2 * first;
  }

 private:
  static_assert(2 * (kMaxPeers - 1) < 32);
  uint32_t counts_ = 0;
};

// What LineSteps is to launches of any length, to a part of an item. The first warp's lanes have the receives, the
// second's the sends.
template <uint32_t kProtocol, bool kOneWay>
class OneTurn {
 public:
  using Ends = TurnEnds;
  static constexpr bool kOneTurn = true;

  __device__ OneTurn(const Launch& launch, Ends& ends, const Item& item, uint32_t channel)
      : launch_(launch), ends_(ends), channel_(channel), receives_(threadIdx.x < 32), mine_(threadIdx.x % 32) {
    if (threadIdx.x == 32) ends.aborted = ends.reported = false;
    if (!receives_) __syncwarp();
    if (threadIdx.x >= 64 || mine_ >= (receives_ ? item.receiveCount : item.sendCount)) {
      mine_ = kNone;
    } else {
      peer_ = receives_ ? item.receives[mine_] : item.sends[mine_];
      end_ = loadPairEnd<kProtocol>(launch, channel, peer_, receives_);
      if (!receives_) awaitApart(launch, ends, end_);
      TurnEnd& shared = (receives_ ? ends.receives : ends.sends)[mine_];
#pragma unroll
      for (uint32_t k = 0; k < kMostSteps; k++)
        shared.slots[k] = end_.slots + ((end_.step + k) & (slots() - 1)) * slotBytes();
      shared.flag = end_.step + 1;
    }
    __syncthreads();
  }

  __device__ __forceinline__ uint32_t slots() const { return launch_.slots.lineSteps; }
  __device__ __forceinline__ uint32_t slotBytes() const { return lineSlotBytes<kProtocol>(launch_); }

  // Of the step under way.
  __device__ __forceinline__ uint32_t receiveFlag(uint32_t i) const { return ends_.receives[i].flag + received_[i]; }
  __device__ __forceinline__ uint32_t sendFlag(uint32_t i) const { return ends_.sends[i].flag + sent_[i]; }
  template <class T>
  __device__ __forceinline__ T* receiveSlot(uint32_t i) const {
    return reinterpret_cast<T*>(ends_.receives[i].slots[received_[i]]);
  }
  template <class T>
  __device__ __forceinline__ T* sendSlot(uint32_t i) const {
    return reinterpret_cast<T*>(ends_.sends[i].slots[sent_[i]]);
  }
  __device__ __forceinline__ bool isRenewal(uint32_t i) const { return isRenewed(sendFlag(i) - 1, slots()); }

  __device__ __forceinline__ void awaitCredits(const Move&) const {}
  __device__ __forceinline__ void handOn(const Move& move, uint32_t bytes) {
    const uint32_t first = receives_ ? move.from : move.to, count = receives_ ? move.froms : move.tos;
    if (mine_ - first < count) end_.bytes += bytes;
    received_.increment(move.from, move.froms);
    sent_.increment(move.to, move.tos);
  }

  // After the last move. No other thread looks at what this writes. All of it stands before what the first thread does
  // next.
  __device__ __forceinline__ void finish() {
    if (mine_ != kNone) {
      if (receives_) {
        end_.step += received_[mine_];
      } else {
        if (!kOneWay && received_[mine_] > 0) end_.freed = end_.step + received_[mine_] - 1;
        end_.step += sent_[mine_];
      }
      storeEnd<kProtocol>(launch_, pairState(launch_, channel_, peer_), receives_, end_);
    }
    __syncthreads();
    if (!kOneWay || !receives_) return;
    // All have read.
    if (mine_ != kNone && received_[mine_] > 0 && isCreditDue(end_.step, slots())) storeCredit(end_.head, end_.step);
    __syncwarp();
  }

 private:
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint32_t kMostSteps = kOneWay ? 1 : kMostStepsOfTurn;

  // Seldom needed: after launches that tell credit.
  static __device__ __forceinline__ void awaitApart(const Launch& launch, Waits& waits, End& end) {
    const uint32_t last = end.step + kMostSteps - 1;
    if (reached(end.freed + launch.slots.lineSteps, last + 1)) return;
    Patience patience(launch, waits);
    awaitCredit(end, last, launch.slots.lineSteps, patience);
  }

  const Launch& launch_;
  Ends& ends_;
  const uint32_t channel_;
  const bool receives_;
  uint32_t mine_;  // number of the connection that this thread has an end of
  uint32_t peer_ = 0;
  End end_{};
  TurnCounts received_, sent_;
};
template <bool kOneWay>
struct TurnSteps {
  template <uint32_t kProtocol>
  using Of = OneTurn<kProtocol, kOneWay>;
};

}  // namespace ncclrun::cuda
