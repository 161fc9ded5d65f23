// The host segment: shared memory of one communicator on one host. Made zeroed by the agent, mapped by the agent and by
// every local rank. Zero is the valid initial state of everything here.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace ncclrun {

// Raised once, by the agent (or by a local rank that aborts): `sentence` and the numbers are written first, then
// `flag`, then every doorbell rings.
struct AbortBlock {
  alignas(64) std::atomic<uint32_t> flag;  // 0 = fine; 1 = being written; else 2 + ncclResult_t
  uint32_t rank;                           // who broke the communicator; ~0: nobody in particular
  char sentence[504];                      // NUL-terminated UTF-8
};
static_assert(sizeof(AbortBlock) == 512);

// The collective with which a rank last compared its calls with those of the other ranks of its host
// (datapath/call_check.h): a StepCall, whose first word is its number; 0: there is none, or it is being written.
struct CallRecord {
  std::array<std::atomic<uint64_t>, 5> words;
};

// The futex of a sleeping rank. A peer that has changed something the rank may wait for adds 1 to `sequence` and wakes
// the futex on it, if `sleepers` is not 0. Both sides need a full fence between their store and their load (Dekker).
struct Doorbell {
  alignas(64) std::atomic<uint32_t> sequence;
  std::atomic<uint32_t> sleepers;
  // Of the same rank; nobody sleeps on these.
  CallRecord called;
  // Written once, by the rank itself when it leaves in order: 1 + the number of collectives that it has called; 0 while
  // it is there; kAborted. What it has sent lies in memory by then, and it takes nothing more.
  std::atomic<uint64_t> left;
  std::atomic<uint32_t> releases;  // number of times it has freed or deregistered buffers that others may have mapped
};
static_assert(sizeof(Doorbell) == 64);

// In Doorbell::left: the rank has aborted the communicator. The agents report it too, but later.
inline constexpr uint64_t kAborted = ~uint64_t(0);

struct NodeBarrier {
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;
};
static_assert(sizeof(NodeBarrier) == 128);

// The regions (plan/launch_format.h) that a GPU's rank publishes to the others of its host during communicator setup.
struct DeviceRecord {
  alignas(64) std::atomic<uint32_t> stage;  // 1: what follows is there; 2: `reached` too; 3: `splitLines` too
  uint32_t tornLines;                       // words of 128-byte lines that arrived without the rest; ~0: not probed
  uint64_t process;                         // random token of the process: ranks with the same use `pointer` directly
  uint64_t context;                         // in that process
  uint64_t pointer;
  uint64_t bytes;
  char ipcHandle[64];             // for other processes
  std::atomic<uint64_t> reached;  // bit k: the rank can store into the regions of local rank k
  char why[256];                  // if not all: why not, the first
};
static_assert(sizeof(DeviceRecord) == 384);

// Flags in host memory that the streams of two GPUs write and wait for when the copy engines of one store into the
// other's buffer: an aborting rank can end these waits, and both sides are visible from outside. 1: set; the waiting
// side clears it.
inline constexpr uint32_t kCopyParts = 16;
struct CopyFlags {
  alignas(64) uint32_t ready;                // written by the receiver: its buffer may be stored into
  alignas(64) uint32_t arrived[kCopyParts];  // written by the sender: that part has arrived
};
static_assert(sizeof(CopyFlags) == 128);

// The location of a rank's buffer, as published to other ranks.
struct BufferLocation {
  uint64_t allocation;  // its number in the rank's process; 0: no rank stores into the buffer
  uint64_t base;        // of the allocation, there
  uint64_t offset;      // of the buffer in it
  char ipcHandle[64];   // of the allocation
};

// The record of an agreement on direct stores (cuda/agreement.h).
struct AgreementRecord {
  alignas(64) std::atomic<uint64_t> verdict;
  std::atomic<uint64_t> published;  // number of the agreement that the location belongs to; 0: it is being written
  std::array<std::atomic<uint64_t>, sizeof(BufferLocation) / sizeof(uint64_t)> location;

  // Called by its only writer. A rank that reads a word of the new location, or of a later one, sees that `published`
  // has changed.
  void publish(const BufferLocation& from, uint64_t number) {
    published.store(0, std::memory_order_relaxed);
    const auto words = std::bit_cast<std::array<uint64_t, std::tuple_size_v<decltype(location)>>>(from);
    for (size_t i = 0; i < words.size(); i++) location[i].store(words[i], std::memory_order_release);
    published.store(number, std::memory_order_release);
  }
  bool isPublished(uint64_t number) const { return published.load(std::memory_order_acquire) == number; }
  // Consistent only if isPublished() still holds afterwards.
  BufferLocation read() const {
    std::array<uint64_t, std::tuple_size_v<decltype(location)>> words;
    for (size_t i = 0; i < words.size(); i++) words[i] = location[i].load(std::memory_order_acquire);
    return std::bit_cast<BufferLocation>(words);
  }
};
inline constexpr uint32_t kAgreements = 8;  // per pair, used round-robin
static_assert(sizeof(AgreementRecord) == 128);
// The records of a host: for each ordered pair of its ranks, and of each rank with itself.
struct AgreementTable {
  AgreementRecord* first;
  uint32_t localRanks;
  AgreementRecord& at(uint32_t from, uint32_t to, uint64_t number) const {
    return first[(uint64_t(from) * localRanks + to) * kAgreements + number % kAgreements];
  }
};
// Bytes for each ordered pair of GPU ranks, and for each rank with itself.
inline constexpr uint64_t kPairFlagBytes = sizeof(CopyFlags) + kAgreements * sizeof(AgreementRecord);

// One direction of one connection: a ring of slots. Steps count up for ever; slot = step mod steps.
struct Connection {
  // The sender's. With up to 12 slots one cache line brings the receiver all of it.
  alignas(64) std::atomic<uint64_t> tail;  // steps published
  std::atomic<uint64_t> bytes;             // payload bytes published so far: the per-edge counter
  std::atomic<uint32_t> stepBytes[16];     // payload of each slot
  // The receiver's.
  alignas(64) std::atomic<uint64_t> head;  // steps freed
  std::atomic<uint64_t> llHead;            // the same for protocol LL
  // Slots follow at kConnectionHeaderBytes, then the lines of protocol LL (net/ll.h).
};
inline constexpr uint64_t kConnectionHeaderBytes = 256;
static_assert(sizeof(Connection) <= kConnectionHeaderBytes);
inline constexpr uint32_t kLLSteps = 32;
inline constexpr uint32_t kLLStepBytes = 1024;

inline constexpr uint64_t llOffset(uint32_t steps, uint32_t stepBytes) {
  return (kConnectionHeaderBytes + uint64_t(steps) * stepBytes + 63) / 64 * 64;
}
inline constexpr uint64_t connectionBytes(uint32_t steps, uint32_t stepBytes) {
  return llOffset(steps, stepBytes) + uint64_t(kLLSteps) * kLLStepBytes;
}

}  // namespace ncclrun
