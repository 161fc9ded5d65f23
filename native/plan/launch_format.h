// Kernel parameters and data structures in GPU memory: plain structures, the same for the C++ compiler and nvcc.
#pragma once
#include <cstdint>

namespace ncclrun::cuda {

inline constexpr uint32_t kMaxPeers = 16;  // that an operation's blocks have connections with; GPUs of one host
inline constexpr uint32_t kMaxItems = 34;  // operations of one launch
inline constexpr uint32_t kProtocols = 3;  // by plan::Protocol

inline constexpr uint32_t kMaxNetSteps = 16;  // slots of a connection over a network

// One direction between two ranks on one channel, in memory of the rank that receives (or of the host): all of it is
// written by the sender and read by the receiver, who polls its own memory, because stores cross NVLink faster than
// loads. `head` is credit for the other direction. Of a ring, one at each rank on one channel: the previous rank writes
// its data, the next one its credit.
struct Region {
  alignas(128) uint32_t tail;                 // protocol Simple: steps published; not by a sender over a network
  alignas(128) uint32_t head[kProtocols];     // steps of the other direction that its receiver has freed
  alignas(128) uint64_t posts[kMaxNetSteps];  // over a network: what the sender says of each slot, by netPost()
  char* gpuSlots;  // the same: payload of the first slot, in GPU memory (GPUDirect); null: in this region
  // At kRegionHeaderBytes, of a pair: slots of protocol LL, then of LL128, then of Simple; of a ring: of Simple.
};
inline constexpr uint64_t kRegionHeaderBytes = 512;
static_assert(sizeof(Region) <= kRegionHeaderBytes);

// How large the slots are; from the plan, thus the same at all ranks. All numbers of steps are powers of two, all bytes
// multiples of 128. A pair has a region per channel each way: messages, of which each takes few channels, find larger
// slots of protocol Simple on the first ones. Rings have slots of that protocol apart, where there are more than two
// ranks; of the other protocols they use the pairs'.
struct Slots {
  uint32_t channels;
  uint32_t wideChannels;  // the first ones
  uint32_t pairSteps;
  uint32_t wideStepBytes;
  uint32_t narrowStepBytes;  // on the other channels
  uint32_t lineSteps;
  uint32_t llStepBytes;     // LL: lines of 16 bytes carry 8. Bytes of lines, flags included
  uint32_t ll128StepBytes;  // LL128: lines of 128 bytes carry 120
  uint32_t ringSteps;
  uint32_t ringStepBytes;
  uint32_t headerBytes;  // in front of the payload of each slot of protocol Simple: 0, or kNetHeaderBytes
};
// Where a network connects hosts, the proxy sends a slot as it lies in memory, with a header in front of the payload,
// which the proxy writes or, in GPU memory, the kernel.
inline constexpr uint32_t kNetHeaderBytes = 128;
inline constexpr uint32_t kNetMessageHeaderBytes = 64;  // the last of these, which the message begins with
// The first word of the header: the low half of the step's number, and the bytes of payload.
inline constexpr uint64_t netHeader(uint32_t step, uint64_t bytes) { return step | bytes << 32; }
// A word for each slot of a connection over a network: the number of its step plus 1, the protocol, and the bytes of
// payload. All protocols share one sequence of steps there, and the counters of Simple: the proxy, which reads these
// words, says on the wire by which protocol a step was sent. Under Simple the word follows the data; under LL it
// precedes the lines, whose flags say when they are complete.
inline constexpr uint32_t kNetPostIsLL = 1u << 31;
// Of what goes to a network that reduces, the word also says what it is to do (Launch::reduction), above the bytes.
inline constexpr uint32_t kNetPostReduction = 24;  // its lowest bit
inline constexpr uint32_t kReducedStepBytes = 1u << kNetPostReduction;
inline constexpr uint64_t netPost(uint32_t step, bool isLL, uint64_t bytes) {
  return uint64_t(step + 1) << 32 | (isLL ? kNetPostIsLL : 0) | bytes;
}
// Whether a step of lines with flags fills its whole slot. It does so once in a while, so that no flag gets as old as
// the counter's period.
inline constexpr bool isRenewed(uint32_t step, uint32_t steps) { return step % (1u << 30) < steps; }
// From one slot of protocol Simple to the next.
inline constexpr uint32_t slotStride(const Slots& slots, uint32_t stepBytes) { return slots.headerBytes + stepBytes; }

// A single-step launch takes at most two steps of a connection. In exchanges receivers grant no credit, and a sender
// knows that all but the last step have been read. In other launches the receiver grants credit for every half of the
// slots. With so many slots, the steps without credit, at most half of the slots, and those that the sender sends fit,
// so that it never waits for credit that no receiver grants.
inline constexpr uint32_t kMaxSingleSteps = 2;
inline constexpr uint32_t kMinLineStepsForSingleStep = 2 * kMaxSingleSteps;

// Of protocol Simple, between a pair on a channel.
inline constexpr uint32_t pairStepBytes(const Slots& slots, uint32_t channel) {
  return channel < slots.wideChannels ? slots.wideStepBytes : slots.narrowStepBytes;
}
// Where a protocol's slots begin in a pair's region.
inline constexpr uint32_t slotOffset(uint32_t protocol, const Slots& slots) {
  const uint32_t llBytes = protocol == 1 ? 0 : slots.lineSteps * slots.llStepBytes;
  const uint32_t ll128Bytes = protocol == 0 ? slots.lineSteps * slots.ll128StepBytes : 0;
  return uint32_t(kRegionHeaderBytes) + llBytes + ll128Bytes;
}
// Where a channel's region begins among those of a pair.
inline constexpr uint64_t regionOffset(const Slots& slots, uint32_t channel) {
  const uint32_t wide = channel < slots.wideChannels ? channel : slots.wideChannels;
  const uint64_t steps = uint64_t(wide) * slotStride(slots, slots.wideStepBytes) +
                         uint64_t(channel - wide) * slotStride(slots, slots.narrowStepBytes);
  return uint64_t(channel) * slotOffset(0, slots) + slots.pairSteps * steps;
}
inline constexpr uint64_t inPages(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }
// Of all channels of a pair, one way.
inline constexpr uint64_t pairBytes(const Slots& slots) { return inPages(regionOffset(slots, slots.channels)); }

inline constexpr bool hasRingsApart(uint32_t ranks) { return ranks > 2; }
inline constexpr uint64_t ringRegionBytes(const Slots& slots) {
  return kRegionHeaderBytes + uint64_t(slots.ringSteps) * slotStride(slots, slots.ringStepBytes);
}
// Of all channels at one rank.
inline constexpr uint64_t ringBytes(const Slots& slots, uint32_t ranks) {
  return hasRingsApart(ranks) ? inPages(slots.channels * ringRegionBytes(slots)) : 0;
}

// Moves that only send under protocol Simple go through shared memory in pieces: one is loaded into a stage while those
// before are stored (bulk_sends.cuh). With smaller pieces the issuing thread would be slower than an NVLink.
#ifdef __CUDACC__
inline constexpr uint32_t kBulkBytes = 16384;
#else
inline constexpr uint32_t kBulkBytes = 256;  // the stand-in's launches send less
#endif
inline constexpr uint32_t kBulkStages = 4;
inline constexpr uint32_t kBulkSpaceBytes = 16384 * kBulkStages + 128;

// Operands that a kernel reads in the ranks' buffers go through shared memory, too: a stage holds a piece of each.
#ifdef __CUDACC__
inline constexpr uint32_t kPullStageBytes = 32768;
#else
inline constexpr uint32_t kPullStageBytes = 2048;
#endif
inline constexpr uint32_t kPullStages = 6;
inline constexpr uint32_t kPullSpaceBytes = 32768 * kPullStages + 128;

// Steps counted since the beginning, modulo 2^32. They live in the GPU's memory and advance in the kernel, so that a
// captured launch can be replayed.
struct SendState {
  uint64_t bytes;  // payload so far, under any protocol
  uint32_t step[kProtocols];
  uint32_t head[kProtocols];  // steps that the receiver had freed at the last poll
};
struct ReceiveState {
  uint64_t bytes;
  uint32_t step[kProtocols];
  uint32_t unused[kProtocols];
};
static_assert(sizeof(SendState) == 32 && sizeof(ReceiveState) == 32);

// Reduction operators. A module has the operators of two types; opIndexOf() numbers type and operator.
enum class RedOp : uint8_t { sum, prod, max, min, preMulSum, average };  // average: of integers
inline constexpr uint8_t kRedOps = 6;
inline constexpr uint8_t opIndexOf(bool secondType, RedOp redOp) {
  return uint8_t(uint8_t(secondType) * kRedOps + uint8_t(redOp));
}

enum class Routine : uint8_t {
  copy,  // a single rank's
  allReduceOneShot,
  allReduceTwoShot,
  allReduceRing,
  allReduceTree,
  allReduceRail,
  allReduceCollnet,
  allReduceCollnetChain,
  reduceScatterDirect,
  reduceScatterRing,
  reduceScatterRail,
  reduceDirect,
  reduceRing,
  reduceTree,
  reducePulled,  // `in` of the launch: what this rank reads of each other one's buffer
  allGatherDirect,
  allGatherRing,
  allGatherRail,
  broadcastDirect,
  broadcastRing,
  broadcastTree,
  allToAll,
  gather,
  scatter,
  send,
  receive,
  exchange,  // both with one peer, in place
  barrier,
  mixed,  // a launch's: sends and receives of several protocols
};

// Of one connection, as this GPU sees them: the region that the peer writes and that which it reads.
struct RegionPair {
  char* in;
  char* out;
  uint64_t isRemote;  // 1: memory of the host, where the proxy plays the peer; kReduces: a network that reduces
};
inline constexpr uint64_t kReduces = 2;
// This rank's position in a channel's ring. Slots and states are those of protocol Simple.
struct RingPosition {
  uint16_t index, previous, next, unused;
  uint32_t state;  // index of both connections' states
  uint32_t slots;  // offset in the regions
  uint32_t steps;
  uint32_t stepBytes;
  RegionPair fromPrevious, toNext;
};
static_assert(sizeof(RingPosition) == 72);

// An entry of the flight recorder in words, as kernels write it: the twin of ncclrunRecorderEntry (ncclrun.h).
struct EntryWords {
  uint64_t sequence;
  uint64_t enqueued;
  uint64_t started;
  uint64_t ended;
  uint64_t count;
  uint64_t operationAndPeer;         // 32 bits each
  uint64_t lastPeerAndCommunicator;  // 32 bits each: the upper half of the second has the hash
  uint64_t call;                     // flags, collective, call, algorithm, protocol, channels, stream
};
static_assert(sizeof(EntryWords) == 64);
inline constexpr uint32_t kRecorderEntries = 4096;
inline constexpr uint64_t kNoRecordPeer = 0xffff;
// A stamp of a kernel: the GPU's clock in the lower 48 bits, and above these how often the ring has wrapped.
inline constexpr uint64_t kStampMask = (uint64_t{1} << 48) - 1;
inline constexpr uint64_t stampTag(uint64_t sequence) { return (sequence - 1) / kRecorderEntries << 48; }
inline constexpr uint64_t kRecordedSendRecv = 8;    // plan::Collective::sendRecv
inline constexpr uint64_t kRecordedSendFlag = 512;  // ncclrunRecordSend
// What the first worker of an item records of it.
struct ItemRecord {
  uint64_t call;          // 0: nothing. Of a captured launch as EntryWords::call; else the sequence of the host's entry
  uint64_t countAndPeer;  // of a captured launch: elements, and above 48 bits the peer or kNoRecordPeer
};
// Where a launch's items are recorded. Of a captured launch each replay takes entries of its own.
struct RecorderAccess {
  EntryWords* entries;  // the host's ring, or of a captured launch this GPU's; null: nothing is recorded
  uint64_t* taken;      // counter of this GPU's entries, in its memory; null: the launch is not captured
  uint32_t*
      counts;  // of the communicator: collectives by their number in the launch, then sends, then receives by peer
  uint32_t communicator;
  uint32_t generation;  // of the communicator's index
};
inline constexpr uint32_t recordedCounts(uint32_t ranks) { return kMaxItems + 2 * ranks; }
// Index of the counter that numbers the operation.
inline constexpr uint32_t recordedCount(const ItemRecord& record, uint32_t ranks) {
  if ((record.call >> 16 & 0xff) != kRecordedSendRecv) return uint32_t(record.call >> 56);
  const bool sends = (record.call & kRecordedSendFlag) != 0;
  return kMaxItems + (sends ? 0 : ranks) + uint32_t(record.countAndPeer >> 48);
}

// One operation on `blocks` channels, from firstChannel on: a part of it for each. Of the launch's blocks those from
// firstBlock on (modulo the grid) are its workers: worker k takes the parts k, k + workers, k + 2 × workers and so on,
// in this order. So ranks need not agree on the number of workers: of the parts that are not done, all ranks come to
// the first one.
struct Item {
  const char* send;
  char* receive;
  uint64_t count;  // elements
  uint64_t chunk;  // elements
  uint64_t step;   // elements
  uint16_t grain;  // elements
  uint16_t workers;
  uint16_t firstBlock;
  uint16_t blocks;
  uint16_t firstChannel;
  uint16_t root;
  Routine routine;
  uint8_t receiveCount;
  uint8_t sendCount;
  uint8_t children : 4;
  uint8_t usesRing : 1;       // connection 0 each way goes to the neighbours in the channel's ring
  uint8_t protocol : 2;       // plan::Protocol, in a launch of several
  uint8_t isSingleStep : 1;   // a block sends and receives at most two steps on each connection; `step` is the chunk
  uint16_t peers[kMaxPeers];  // ranks, by the number of the connection, in either direction; not of rings
  ItemRecord record;
};
static_assert(sizeof(Item) == 104);

// Where a kernel reports a long wait, in host memory: fields of the communicator's slot in the telemetry page.
struct WaitReport {
  uint32_t* state;         // null: nobody reads it
  uint64_t* since;         // CLOCK_MONOTONIC, ns
  uint64_t clockOffset;    // CLOCK_MONOTONIC minus the GPU's clock
  uint32_t idle, waiting;  // values of `state`
};

struct Launch {
  // Regions of the directions from us to each peer, channel 0, as this GPU sees them; and from each peer to us.
  char* out[kMaxPeers];
  char* in[kMaxPeers];
  const RegionPair* pairs;  // with ranks of other hosts: of all ranks, instead of these; else null. This rank's own
                            // are those of a network that reduces
  SendState* sends;         // [channel × ranks + peer], then [channel] of the rings
  ReceiveState* receives;
  const RingPosition* ringPositions;  // [channel]
  const uint32_t* rings;              // [channel × ranks + index]
  const uint32_t* byHost;             // ranks, [host × locals + local]; null: hosts have unlike numbers of ranks
  const uint32_t* aborted;            // abort flag in host memory: not 0 ends every wait; null: unused
  const uint32_t* aborted2;           // the same
  const void* scalarAt;               // of a pre-multiplied sum: one element; null: it is `scalar`
  uint64_t scalar;
  WaitReport report;
  RecorderAccess recorder;
  uint32_t* ended;  // counter that each block increments as it ends; null: unused
  Slots slots;
  uint32_t divisor;  // of an average of integers; else 1
  uint16_t rank;
  uint16_t ranks;
  uint16_t hosts;  // as `locals`, `host` and `local`: of rails (algorithm/work.h)
  uint16_t host;
  uint16_t locals;
  uint16_t local;
  uint16_t itemCount;
  uint8_t elementBytes;   // element size of all counts
  uint8_t opIndex;        // type and operator: opIndexOf()
  uint8_t usesGpuDirect;  // slots of some connections over the network lie in GPU memory: Region::gpuSlots
  uint8_t reduction;      // for a network that reduces: what it is to do, as its proxy numbers it (net/proxy)
  Item items[kMaxItems];
};
static_assert(sizeof(Launch) <= 4096);
inline constexpr RegionPair regionsOf(const Launch& launch, uint32_t peer) {
  return launch.pairs != nullptr ? launch.pairs[peer] : RegionPair{launch.in[peer], launch.out[peer], 0};
}

}  // namespace ncclrun::cuda
