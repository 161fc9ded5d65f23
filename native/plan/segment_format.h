// The host segment: shared memory of one communicator on one host. Made zeroed by the agent, mapped by the agent and by
// every local rank. Zero is the valid initial state of everything here.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace ncclrun {

// Raised once, by the agent (or by a local rank that aborts): `sentence` and the numbers are written first, then
// `word`, then every doorbell rings.
struct AbortBlock {
  alignas(64) std::atomic<uint32_t> word;  // 0 = fine; 1 = being written; else 2 + ncclResult_t
  uint32_t rank;                           // who broke the communicator; ~0: nobody in particular
  char sentence[504];                      // NUL-terminated UTF-8
};
static_assert(sizeof(AbortBlock) == 512);

// The collective with which a rank last compared its calls with those of the other ranks of its host
// (datapath/call_check.h): a StepCall, whose first word is its number; 0: there is none, or it is being written.
struct CallRecord {
  std::array<std::atomic<uint64_t>, 5> words;
};

// What a sleeping rank waits on. A peer that changed something the rank may wait for: if `sleepers` is not 0, it adds 1
// to `sequence` and wakes the futex on it. Both sides need a full fence between their store and their load (Dekker).
struct Doorbell {
  alignas(64) std::atomic<uint32_t> sequence;
  std::atomic<uint32_t> sleepers;
  // Of the same rank; nobody sleeps on these.
  CallRecord called;
  // Written once, by the rank itself when it leaves in order: 1 + the number of collectives that it has called; 0 while
  // it is there; kAborted. What it has sent lies in memory by then, and it takes nothing more.
  std::atomic<uint64_t> left;
  std::atomic<uint32_t> takenBack;  // how often it has freed or deregistered buffers that others may have mapped
};
static_assert(sizeof(Doorbell) == 64);

// In Doorbell::left: the rank has aborted the communicator. The agents tell, too, but later.
inline constexpr uint64_t kAborted = ~uint64_t(0);

struct NodeBarrier {
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;
};
static_assert(sizeof(NodeBarrier) == 128);

// What the rank of one GPU tells the others of its host while they set up a communicator: where its regions
// (plan/launch_format.h) lie.
struct DeviceRecord {
  alignas(64) std::atomic<uint32_t> stage;  // 1: what follows is there; 2: `reached` too; 3: `splitLines` too
  uint32_t splitLines;                      // words of 128-byte lines that came without the rest; ~0: not looked
  uint64_t process;                         // random, of the rank's process: who has the same uses `pointer` as it is
  uint64_t context;                         // there
  uint64_t pointer;
  uint64_t bytes;
  char ipcHandle[64];             // for other processes
  std::atomic<uint64_t> reached;  // bit k: the rank can store into the regions of local rank k
  char why[256];                  // if not all: why not, the first
};
static_assert(sizeof(DeviceRecord) == 384);

// What the streams of two GPUs write and wait for when one's copy engines store into the other's buffer, in memory of
// the host: so whoever aborts ends these waits, and both sides of each are seen from outside. 1: so; who waited makes
// it 0 again.
inline constexpr uint32_t kCopyParts = 16;
struct CopyWords {
  alignas(64) uint32_t ready;                // written by who receives: its buffer may be stored into
  alignas(64) uint32_t arrived[kCopyParts];  // written by who sends: that part of it is there
};
static_assert(sizeof(CopyWords) == 128);

// Where a rank's buffer lies, as others find it.
struct BufferPlace {
  uint64_t allocation;  // its number in the process of the rank; 0: nobody stores into the buffer
  uint64_t base;        // of the allocation, there
  uint64_t offset;      // of the buffer in it
  char ipcHandle[64];   // of the allocation
};

// Whether an operation stores into buffers directly (cuda/agreement.h).
struct AgreementRecord {
  alignas(64) std::atomic<uint64_t> verdict;
  std::atomic<uint64_t> told;  // number of the agreement that the place belongs to; 0: it is being written
  std::array<std::atomic<uint64_t>, sizeof(BufferPlace) / sizeof(uint64_t)> place;

  // By its only writer. Whoever reads a word of the new place, or of one that comes later, sees that `told` has
  // changed.
  void tell(const BufferPlace& from, uint64_t number) {
    told.store(0, std::memory_order_relaxed);
    const auto words = std::bit_cast<std::array<uint64_t, std::tuple_size_v<decltype(place)>>>(from);
    for (size_t i = 0; i < words.size(); i++) place[i].store(words[i], std::memory_order_release);
    told.store(number, std::memory_order_release);
  }
  bool isTold(uint64_t number) const { return told.load(std::memory_order_acquire) == number; }
  // Whole only if it is still told afterwards.
  BufferPlace read() const {
    std::array<uint64_t, std::tuple_size_v<decltype(place)>> words;
    for (size_t i = 0; i < words.size(); i++) words[i] = place[i].load(std::memory_order_acquire);
    return std::bit_cast<BufferPlace>(words);
  }
};
inline constexpr uint32_t kAgreements = 8;  // of a kind, in turn
static_assert(sizeof(AgreementRecord) == 128);
// Those of a host: for each of its ranks' ways to another, and to itself.
struct AgreementTable {
  AgreementRecord* first;
  uint32_t localRanks;
  AgreementRecord& at(uint32_t from, uint32_t to, uint64_t number) const {
    return first[(uint64_t(from) * localRanks + to) * kAgreements + number % kAgreements];
  }
};
// Of the way from one GPU's rank to another's, and of a rank's to itself.
inline constexpr uint64_t kWayBytes = sizeof(CopyWords) + kAgreements * sizeof(AgreementRecord);

// One direction of one connection: a ring of slots. Steps count up for ever; slot = step mod steps.
struct Connection {
  // The sender's. With up to 12 slots one cache line brings the receiver all of it.
  alignas(64) std::atomic<uint64_t> tail;  // steps published
  std::atomic<uint64_t> bytes;             // payload bytes published so far: the per-edge counter
  std::atomic<uint32_t> stepBytes[16];     // payload of each slot
  // The receiver's.
  alignas(64) std::atomic<uint64_t> head;  // steps freed
  std::atomic<uint64_t> lowLatencyHead;    // the same of the lines
  // Slots follow at kConnectionHeaderBytes, then the lines of protocol LL (net/low_latency.h).
};
inline constexpr uint64_t kConnectionHeaderBytes = 256;
static_assert(sizeof(Connection) <= kConnectionHeaderBytes);
inline constexpr uint32_t kLowLatencySteps = 32;
inline constexpr uint32_t kLowLatencyStepBytes = 1024;

inline constexpr uint64_t lowLatencyOffset(uint32_t steps, uint32_t stepBytes) {
  return (kConnectionHeaderBytes + uint64_t(steps) * stepBytes + 63) / 64 * 64;
}
inline constexpr uint64_t connectionBytes(uint32_t steps, uint32_t stepBytes) {
  return lowLatencyOffset(steps, stepBytes) + uint64_t(kLowLatencySteps) * kLowLatencyStepBytes;
}

}  // namespace ncclrun
