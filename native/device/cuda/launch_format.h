// What the host gives a kernel, and what lies in the memory of GPUs: plain structures, the same for the C++ compiler
// and nvcc.
#pragma once
#include <cstdint>

namespace ncclrun::cuda {

inline constexpr uint32_t kMaxPeers = 16;  // GPUs of one communicator on one host
inline constexpr uint32_t kMaxItems = 39;  // operations of one launch
inline constexpr uint32_t kProtocols = 3;  // by plan::Protocol

// One direction between two ranks on one channel, in memory of the rank that receives (or of the host): all of it is
// written by the sender and read by the receiver, who polls its own memory, because stores cross NVLink faster than
// loads. `head` is credit for the other direction.
struct Region {
  alignas(128) uint32_t tail;              // protocol Simple: steps published
  alignas(128) uint32_t head[kProtocols];  // steps of the other direction that its receiver has freed
  // At kRegionHeaderBytes: slots of protocol Simple, then of LL, then of LL128.
};
inline constexpr uint64_t kRegionHeaderBytes = 512;
static_assert(sizeof(Region) <= kRegionHeaderBytes);

// Slots of the other protocols, whose sizes the plan does not set. Bytes of lines, flags included.
inline constexpr uint32_t kLineSteps = 8;
inline constexpr uint32_t kLine64StepBytes = 16u << 10;   // LL: lines of 16 bytes carry 8
inline constexpr uint32_t kLine128StepBytes = 32u << 10;  // LL128: lines of 128 bytes carry 120
inline constexpr uint32_t kLine64Payload = kLine64StepBytes / 16 * 8;
inline constexpr uint32_t kLine128Payload = kLine128StepBytes / 128 * 120;

inline constexpr uint64_t slotOffset(uint32_t protocol, uint32_t steps, uint32_t stepBytes) {
  const uint64_t simple = (uint64_t(steps) * stepBytes + 127) / 128 * 128;
  return kRegionHeaderBytes + (protocol > 0 ? simple : 0) + (protocol > 1 ? kLineSteps * kLine64StepBytes : 0);
}
// Of one channel; a pair of ranks has channels × this each way.
inline constexpr uint64_t regionBytes(uint32_t steps, uint32_t stepBytes) {
  return (slotOffset(2, steps, stepBytes) + uint64_t(kLineSteps) * kLine128StepBytes + 4095) / 4096 * 4096;
}

// Steps counted since the beginning, modulo 2^32. They live in the GPU's memory and advance in the kernel, so that a
// captured launch can be replayed.
struct SendState {
  uint64_t bytes;  // payload so far, under any protocol
  uint32_t step[kProtocols];
  uint32_t head[kProtocols];  // what the receiver had freed when we last looked
};
struct ReceiveState {
  uint64_t bytes;
  uint32_t step[kProtocols];
  uint32_t unused[kProtocols];
};
static_assert(sizeof(SendState) == 32 && sizeof(ReceiveState) == 32);

// What is folded, and how. A module has the kinds of two types.
enum class Fold : uint8_t { sum, prod, max, min, preMulSum, average };  // average: of whole numbers
inline constexpr uint8_t kFolds = 6;
inline constexpr uint8_t kindOf(bool secondType, Fold fold) {
  return uint8_t(uint8_t(secondType) * kFolds + uint8_t(fold));
}

enum class Routine : uint8_t {
  copy,  // a single rank's
  allReduceOneShot,
  allReduceTwoShot,
  allReduceRing,
  allReduceTree,
  reduceScatterDirect,
  reduceScatterRing,
  reduceDirect,
  reduceRing,
  reduceTree,
  allGatherDirect,
  allGatherRing,
  broadcastDirect,
  broadcastRing,
  broadcastTree,
  allToAll,
  gather,
  scatter,
  send,
  receive,
  barrier,
  mixed,  // a launch's: sends and receives of several protocols
};

// Of this rank in a channel's ring.
struct RingPlace {
  uint8_t place, previous, next, unused;
};

// One operation on some blocks: block firstBlock + k (modulo the grid) takes channel firstChannel + k.
struct Item {
  const char* send;
  char* receive;
  uint64_t count;  // elements
  uint64_t chunk;  // elements
  uint32_t grain;  // elements
  uint16_t firstBlock;
  uint16_t blocks;
  uint16_t firstChannel;
  Routine routine;
  uint8_t root;
  uint8_t children;
  uint8_t receiveCount;
  uint8_t sendCount;
  uint8_t usesRing : 1;         // connection 0 each way goes to the neighbours in the channel's ring
  uint8_t protocol : 2;         // plan::Protocol, in a launch of several
  uint8_t receives[kMaxPeers];  // ranks, by the number of the connection
  uint8_t sends[kMaxPeers];
};
static_assert(sizeof(Item) == 80);

// Where a kernel that waits long says so, in memory of the host: fields of the communicator's slot in the telemetry
// page.
struct WaitReport {
  uint32_t* state;         // null: nobody reads it
  uint64_t* since;         // CLOCK_MONOTONIC, ns
  uint64_t clockOffset;    // what the GPU's clock lacks to that one
  uint32_t idle, waiting;  // values of `state`
};

struct Launch {
  char* out[kMaxPeers];  // regions of the directions from us to each peer, channel 0; as this GPU sees them
  char* in[kMaxPeers];   // from each peer to us
  SendState* sends;      // [channel × ranks + peer]
  ReceiveState* receives;
  const RingPlace* places;   // [channel]
  const uint32_t* rings;     // [channel × ranks + place]
  const uint32_t* aborted;   // in memory of the host: not 0 ends every wait; null: nobody aborts so
  const uint32_t* aborted2;  // the same
  const void* scalarAt;      // of a pre-multiplied sum: one element; null: it is `scalar`
  uint64_t scalar;
  WaitReport report;
  uint64_t regionStride;  // from channel to channel
  uint32_t steps;         // of protocol Simple
  uint32_t stepBytes;
  uint32_t channels;
  uint32_t divisor;  // of an average of whole numbers; else 1
  uint16_t rank;
  uint16_t ranks;
  uint16_t itemCount;
  uint8_t elementBytes;  // what counts are in
  uint8_t kind;
  Item items[kMaxItems];
};
static_assert(sizeof(Launch) <= 4096);

}  // namespace ncclrun::cuda
