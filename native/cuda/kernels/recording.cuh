// What a kernel writes into the flight recorder: when the first worker of each item begins and ends. No host code runs
// when a graph is replayed, so a captured launch takes entries of its own and writes all of them. The block's last
// thread does it, which has the least to do in small operations; it waits for none of its stores to host memory.
#pragma once
#include "cuda/kernels/connections.cuh"

namespace ncclrun::cuda {

__device__ __forceinline__ bool isRecordingThread() { return threadIdx.x == blockDim.x - 1; }

// The host reuses an entry without asking, and readers recognize stamps of its former operations by their tags.
__device__ __forceinline__ uint64_t recordedTime(uint64_t tag) { return (nanoseconds() & kStampMask) | tag; }

// Takes the next entry of this GPU's ring for a replayed operation. Other launches may be doing the same. A function of
// its own, so that launches that are not captured need no registers for it.
static __device__ __noinline__ void takeEntry(const Launch& launch, const ItemRecord& record, WaitState& waitState) {
  const RecorderAccess& recorder = launch.recorder;
  const uint32_t number = increment(recorder.counts + recordedCount(record, launch.ranks)) + 1;
  const uint64_t before = increment(recorder.taken);
  const uint64_t tag = stampTag(before + 1), begun = recordedTime(tag);
  EntryWords* const entry = recorder.entries + (before & (kRecorderEntries - 1));
  const uint64_t peer = record.countAndPeer >> 48;
  const uint64_t peerBits = peer == kNoRecordPeer ? 0xffffffffull : peer;
  storeVolatile(&entry->lastPeerAndCommunicator, recorder.generation | uint64_t(recorder.communicator) << 32,
                record.call);
  storeVolatile(&entry->count, record.countAndPeer & kStampMask, number | peerBits << 32);
  storeVolatile(&entry->started, begun, 0);
  storeVolatile(&entry->sequence, before + 1, begun);
  waitState.entry = entry;
  waitState.tag = tag;
}

// Called by all threads of a block: at its beginning, before an item of which it is the first worker, and after each
// item, whose stores a barrier has ordered before. No register remembers which item is recorded.
__device__ __forceinline__ void clearRecord(WaitState& waitState) {
  if (isRecordingThread()) waitState.entry = nullptr;
}
__device__ __forceinline__ void beginRecord(const Launch& launch, const Item& item, WaitState& waitState) {
  if (!isRecordingThread() || item.record.call == 0) return;
  if (launch.recorder.taken != nullptr) {
    takeEntry(launch, item.record, waitState);
  } else {
    const uint64_t sequence = item.record.call;
    EntryWords* const entry = launch.recorder.entries + ((sequence - 1) & (kRecorderEntries - 1));
    waitState.entry = entry;
    waitState.tag = stampTag(sequence);
    storeVolatile(&entry->started, recordedTime(stampTag(sequence)));
  }
}
// An item that was aborted has no end.
__device__ __forceinline__ void endRecord(WaitState& waitState) {
  if (!isRecordingThread() || waitState.entry == nullptr) return;
  if (!*static_cast<volatile bool*>(&waitState.aborted))
    storeVolatile(&waitState.entry->ended, recordedTime(waitState.tag));
  waitState.entry = nullptr;
}

// The same between two items of a block, as functions of their own: kernels with many routines have no register to
// spare.
static __device__ __noinline__ void nextRecord(const Launch& launch, const Item& item, bool isFirst,
                                               WaitState& waitState) {
  endRecord(waitState);
  if (isFirst) beginRecord(launch, item, waitState);
}
static __device__ __noinline__ void lastRecord(WaitState& waitState) { endRecord(waitState); }

}  // namespace ncclrun::cuda
