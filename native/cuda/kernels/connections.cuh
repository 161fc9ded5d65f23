// The state of an item's connections on one channel, which the block that works on the item keeps in shared memory.
#pragma once
#include "cuda/kernels/memory.cuh"
#include "plan/launch_format.h"

namespace ncclrun::cuda {

struct ConnectionState {
  char* slots;     // a sender's slots lie in the peer's memory, a receiver's in this GPU's
  uint32_t* tail;  // protocol Simple: counter of posted steps, beside the slots
  uint32_t* head;  // counter of freed steps: a sender polls its own memory, a receiver stores into the peer's
  uint32_t step;   // the next step
  uint32_t freed;  // sender: steps that the receiver had freed at the last poll
  uint64_t bytes;
  uint32_t posted;         // sender, protocol Simple: steps posted so far
  uint32_t writesHeaders;  // sender over a network, whose slots lie in GPU memory: no proxy can
  uint32_t sequence;       // protocol whose counters it uses: over a network all use those of Simple
  uint32_t reduction;      // sender to a network that reduces: what netPost() says of it beside the bytes; else 0
  uint64_t* posts;         // sender over a network: Region::posts; else null
  uint32_t isRemote;       // a proxy carries it

  __device__ __forceinline__ bool isNextToPost(uint32_t one) const {
    return *static_cast<const volatile uint32_t*>(&posted) == one;
  }
};

// State that all waits of a block share, in shared memory.
struct WaitState {
  bool aborted;       // once true, every wait ends at once
  bool reported;      // a wait was long enough to be reported
  EntryWords* entry;  // of the flight recorder, under way; only the recording thread knows it
  uint64_t tag;       // of its stamps
};
struct Connections : WaitState {
  uint32_t steps;  // protocol Simple: number of slots of each connection
  uint32_t stepBytes;
  uint32_t stride;  // protocol Simple: from one slot to the next
  ConnectionState receives[kMaxPeers];
  ConnectionState sends[kMaxPeers];
};

// A spin-wait that gives up when the host has raised one of its abort flags. Reads of host memory are slow, so a warp
// polls these flags only once in kPollsPerHostPoll polls. No code takes the address of a member, so that the counts
// stay in registers.
class SpinWait {
 public:
  __device__ SpinWait(const Launch& launch, WaitState& waitState) : launch_(launch), waitState_(waitState) {}
  // Called after each poll that found nothing. Returns true if the wait has to end.
  __device__ __forceinline__ bool gaveUp() {
    if (*static_cast<volatile bool*>(&waitState_.aborted)) return true;
    yieldToOtherThreads();
    if (++polls_ % kPollsPerHostPoll != 0) return false;
    hostPolls_ = pollHost(launch_, waitState_, hostPolls_);
    return hostPolls_.gaveUp;
  }

 private:
  static constexpr uint64_t kHostPollNanoseconds = 500'000;
  struct HostPolls {
    uint64_t last = 0;   // the clock at the last poll of the host's flags
    uint64_t begun = 0;  // the clock at this wait's first report
    bool gaveUp = false;
  };

  static __device__ __noinline__ HostPolls pollHost(const Launch& launch, WaitState& waitState, HostPolls polls) {
    const uint64_t now = nanoseconds();
    if (polls.last == 0) polls.last = now;
    if (now - polls.last < kHostPollNanoseconds) return polls;
    polls.last = now;
    // One lane polls for all lanes that wait.
    if ((threadIdx.x & 31) != __ffs(__activemask()) - 1) return polls;
    if (launch.report.state != nullptr) {
      *static_cast<volatile bool*>(&waitState.reported) = true;
      if (polls.begun == 0) polls.begun = now;
      storeVolatile(launch.report.since, polls.begun + launch.report.clockOffset);
      storeVolatile(launch.report.state, launch.report.waiting);
    }
    polls.gaveUp = (launch.aborted != nullptr && loadVolatile(launch.aborted) > 1) ||
                   (launch.aborted2 != nullptr && loadVolatile(launch.aborted2) > 1);
    if (polls.gaveUp) *static_cast<volatile bool*>(&waitState.aborted) = true;
    return polls;
  }

  const Launch& launch_;
  WaitState& waitState_;
  uint32_t polls_ = 0;
  HostPolls hostPolls_;
};

// Called by the block's first thread after all stores of the block.
__device__ __forceinline__ void endBlock(const Launch& launch, const WaitState& waitState) {
  if (waitState.reported) storeVolatile(launch.report.state, launch.report.idle);
  if (launch.ended != nullptr) addRelease(launch.ended, 1);
}

// Steps are counted modulo 2^32.
__device__ __forceinline__ bool reached(uint32_t counter, uint32_t wanted) { return int32_t(counter - wanted) >= 0; }

// Waits until the sender's step has a free slot among `steps`. Called by one thread.
__device__ __forceinline__ void awaitCredit(ConnectionState& connection, uint32_t step, uint32_t steps,
                                            SpinWait& spin) {
  uint32_t freed = connection.freed;
  if (reached(freed + steps, step + 1)) return;
  const uint32_t* const head = connection.head;
  do {
    freed = loadVolatile(head);
  } while (!reached(freed + steps, step + 1) && !spin.gaveUp());
  connection.freed = loadAcquire(head);
}

// Protocol Simple: posts the sender's step to the receiver, after all steps before it. Called by one thread after all
// stores of the step; not after an abort.
__device__ __forceinline__ void postStep(const Connections& connections, ConnectionState& connection, uint32_t step,
                                         uint64_t bytes, SpinWait& spin) {
  while (!connection.isNextToPost(step)) {
    if (spin.gaveUp()) return;
  }
  __threadfence_block();
  connection.bytes += bytes;
  if (connection.writesHeaders != 0) {
    char* const slot = connection.slots + uint64_t(step & (connections.steps - 1)) * connections.stride;
    storeVolatile(reinterpret_cast<uint64_t*>(slot - kNetMessageHeaderBytes), netHeader(step, bytes));
  }
  if (connection.posts != nullptr) {
    storeRelease(connection.posts + step % kMaxNetSteps, netPost(step, false, bytes | connection.reduction));
  } else {
    storeRelease(connection.tail, step + 1);
  }
  __threadfence_block();
  *static_cast<volatile uint32_t*>(&connection.posted) = step + 1;
}

// Loads the state of one connection from the GPU's memory and stores it back. `slots`: offset of the slots in the
// regions; `index`: index of the saved state.
template <uint32_t kProtocol>
__device__ __forceinline__ ConnectionState loadConnection(const Launch& launch, RegionPair regions, uint32_t slots,
                                                          uint32_t index, bool receives) {
  const uint32_t header = kProtocol == 0 ? launch.slots.headerBytes : 0;
  char* data = (receives ? regions.in : regions.out) + slots + header;
  auto& region = *reinterpret_cast<Region*>(receives ? regions.in : regions.out);
  char* const gpuSlots =
      header != 0 && launch.usesGpuDirect != 0 ? *static_cast<char* const volatile*>(&region.gpuSlots) : nullptr;
  if (gpuSlots != nullptr) data = gpuSlots;
  auto* const tail = &region.tail;
  const uint32_t sequence = regions.isRemote != 0 ? 0 : kProtocol;
  auto* const head = &reinterpret_cast<Region*>(receives ? regions.out : regions.in)->head[sequence];
  if (receives) {
    const ReceiveState& state = launch.receives[index];
    return {data,     tail, head,    state.step[sequence],      0, state.bytes, 0, 0,
            sequence, 0,    nullptr, uint32_t(regions.isRemote)};
  }
  const SendState& state = launch.sends[index];
  const uint32_t step = state.step[sequence];
  auto* const posts = regions.isRemote != 0 ? region.posts : nullptr;
  const uint32_t reduction = regions.isRemote == kReduces ? uint32_t(launch.reduction) << kNetPostReduction : 0;
  return {data,
          tail,
          head,
          step,
          state.head[sequence],
          state.bytes,
          step,
          gpuSlots != nullptr,
          sequence,
          reduction,
          posts,
          uint32_t(regions.isRemote)};
}
__device__ __forceinline__ void storeConnection(const Launch& launch, uint32_t index, bool receives,
                                                const ConnectionState& connection) {
  if (receives) {
    ReceiveState& state = launch.receives[index];
    state.step[connection.sequence] = connection.step;
    state.bytes = connection.bytes;
  } else {
    SendState& state = launch.sends[index];
    state.step[connection.sequence] = connection.step;
    state.head[connection.sequence] = connection.freed;
    state.bytes = connection.bytes;
  }
}

// Index of the saved state of a pair's connection.
__device__ __forceinline__ uint32_t pairState(const Launch& launch, uint32_t channel, uint32_t peer) {
  return channel * launch.ranks + peer;
}
template <uint32_t kProtocol>
__device__ __forceinline__ ConnectionState loadPairConnection(const Launch& launch, uint32_t channel, uint32_t peer,
                                                              bool receives) {
  const uint64_t at = regionOffset(launch.slots, channel);
  const RegionPair regions = regionsOf(launch, peer);
  return loadConnection<kProtocol>(launch, {regions.in + at, regions.out + at, regions.isRemote},
                                   slotOffset(kProtocol, launch.slots), pairState(launch, channel, peer), receives);
}

// Loads and stores the states of all connections of an item on one channel. The first two warps do the work; the caller
// synchronizes the block before and after.
template <uint32_t kProtocol>
class ConnectionStore {
 public:
  __device__ ConnectionStore(const Launch& launch, const Item& item, uint32_t channel)
      : launch_(launch),
        position_(launch.ringPositions + channel),
        channel_(channel),
        lane_(threadIdx.x & 31),
        receives_(threadIdx.x < 32),
        // The LL and LL128 slots of rings are those of the pairs.
        usesRing_(kProtocol == 0 && item.usesRing) {
    mine_ = receives_ ? lane_ < item.receiveCount : threadIdx.x < 64 && lane_ < item.sendCount;
    if (!mine_ || usesRing_) return;
    if (item.usesRing) {
      peer_ = receives_ ? position_->previous : position_->next;
    } else {
      peer_ = item.peers[lane_];
    }
  }

  __device__ void load(Connections& connections) const {
    if (kProtocol == 0 && threadIdx.x == 0) {
      connections.steps = usesRing_ ? position_->steps : launch_.slots.pairSteps;
      connections.stepBytes = usesRing_ ? position_->stepBytes : pairStepBytes(launch_.slots, channel_);
      connections.stride = slotStride(launch_.slots, connections.stepBytes);
    }
    if (!mine_) return;
    connectionOf(connections) =
        usesRing_ ? loadConnection<kProtocol>(launch_, receives_ ? position_->fromPrevious : position_->toNext,
                                              position_->slots, position_->state, receives_)
                  : loadPairConnection<kProtocol>(launch_, channel_, peer_, receives_);
    // Single-step launches may have read steps without granting credit. The sender may wait for that credit while this
    // block waits for the sender, so grant it now.
    if (kProtocol != 0 && receives_) storeCredit(connectionOf(connections).head, connectionOf(connections).step);
  }
  __device__ void store(Connections& connections) const {
    if (!mine_) return;
    const uint32_t index = usesRing_ ? position_->state : pairState(launch_, channel_, peer_);
    storeConnection(launch_, index, receives_, connectionOf(connections));
  }

 private:
  __device__ ConnectionState& connectionOf(Connections& connections) const {
    return (receives_ ? connections.receives : connections.sends)[lane_];
  }

  const Launch& launch_;
  const RingPosition* const position_;
  const uint32_t channel_;
  const uint32_t lane_;
  const bool receives_;
  const bool usesRing_;
  bool mine_;
  uint32_t peer_ = 0;
};

}  // namespace ncclrun::cuda
