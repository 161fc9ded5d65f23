// HostPlan: what the planner decided for one communicator, as one host's engines read it. Written by
// control/plan/encode.ts.
//
// One blob per host and communicator, sealed in a memfd that all local ranks map read-only. Little-endian, versioned;
// every offset is from the start of the blob and every array is inside it (checked once by PlanView::open, which trusts
// nothing). Records only grow: a reader uses its own record size or the writer's `stride`, whichever is smaller.
#pragma once
#include <cstdint>

namespace ncclrun::plan {

inline constexpr uint32_t kMagic = 0x4c50434e;  // "NCPL"
inline constexpr uint16_t kVersion = 4;

enum class Algorithm : uint8_t {
  directOneShot = 0,
  directTwoShot = 1,
  ring = 2,
  tree = 3,
  collnet = 4,     // the direct form (algorithm/collnet.h)
  copyEngine = 5,  // copy engines store into the other ranks' buffers; what is reduced is reduced before
  rail = 6,
  collnetChain = 7,
};
enum class Protocol : uint8_t { simple = 0, ll = 1, ll128 = 2 };
enum class Device : uint8_t { host = 0, cuda = 1 };
enum class Transport : uint8_t { shm = 0, socket = 1, p2p = 2, ib = 3, plugin = 4 };
// Which algorithm uses an edge.
enum class EdgeKind : uint8_t { ring = 0, tree = 1, rail = 2, pair = 3, collnet = 4 };
enum class Collective : uint8_t {
  allReduce = 0,
  allGather = 1,
  reduceScatter = 2,
  broadcast = 3,
  reduce = 4,
  allToAll = 5,
  gather = 6,
  scatter = 7,
  sendRecv = 8,
  barrier = 9,
};
// Preconditions of a variant, as bits.
inline constexpr uint32_t kRequiresRegisteredBuffers = 1;
inline constexpr uint32_t kRequiresNotCaptured = 2;
inline constexpr uint32_t kRequiresPublishedAddresses = 4;
inline constexpr uint32_t kRequiresWholeLines = 8;         // stores of 128 bytes arrive whole between all ranks
inline constexpr uint32_t kRequiresNetworkReduction = 32;  // the network reduces the call's type and operator
inline constexpr uint32_t kRequiresHostSlots = 16;         // the network is one that cannot reach a GPU's memory

// A variant's flag: the collective is carried out as sends and receives with blocks of their own where the call allows
// it, and has no more channels than such a message.
inline constexpr uint32_t kAsMessages = 1;

// NIC of an edge or a pair that uses no network.
inline constexpr uint16_t kNoNic = 0xffff;

// Where a section lies: `count` records of `stride` bytes from `offset`.
struct Section {
  uint64_t offset;
  uint32_t count;
  uint32_t stride;
};

struct Header {
  uint32_t magic;
  uint16_t version;
  uint16_t headerBytes;
  uint64_t totalBytes;
  uint32_t ranks;
  uint32_t hosts;
  uint32_t hostIndex;   // of this blob's host
  uint32_t localRanks;  // on this host
  uint32_t channels;
  uint32_t ringSteps;  // slots of a ring connection's buffer
  uint32_t ringStepBytes;
  uint32_t pairSteps;  // slots of a pair connection's buffer
  uint32_t pairStepBytes;
  uint8_t sameHostTransport;
  uint8_t otherHostTransport;
  uint8_t device;        // Device
  uint8_t copyChannels;  // of a launch with messages, left to what a rank sends itself
  uint64_t spinNanoseconds;
  uint8_t token[16];

  // The host segment (shared memory, zeroed, made by the agent) and what lies where in it.
  uint64_t segmentBytes;
  uint64_t abortOffset;     // one AbortBlock
  uint64_t doorbellOffset;  // localRanks × Doorbell
  uint64_t barrierOffset;   // one NodeBarrier
  uint64_t pairOffset;      // the pair connection from local rank i to local rank j: pairOffset + (i*localRanks + j) *
                            // pairStride
  uint64_t pairStride;
  // On GPUs a pair has, each way, one region per channel (plan/launch_format.h), the place of the pair (j, j) is
  // for the ring regions of j, and DeviceRecord × localRanks lie behind the barrier.

  Section hostTable;      // HostRecord × hosts, in the order in which rings go through them
  Section peerTable;      // PeerRecord × ranks
  Section localTable;     // LocalRecord × localRanks, by local index; ascending rank
  Section memberTable;    // uint32_t × ranks: the ranks of the first host, ascending, then those of the next
  Section channelTable;   // ChannelRecord × channels
  Section shapeTable;     // ShapeRecord
  Section ringTable;      // uint32_t: of every shape its rings, each the host's local indices in ring order
  Section treeTable;      // uint32_t: of every shape its trees, each the parent's local index by local index, at the
                          // host's top its own
  Section hostRingTable;  // HostRingRecord × hostRings*hosts
  Section hostTreeTable;  // HostTreeRecord × hostTrees*hosts
  Section edgeTable;      // EdgeRecord: all local ranks' ring edges; LocalRecord says which are whose
  Section tuningTable;    // TuningRecord, by collective, then ascending size
  Section variantTable;   // VariantRecord; TuningRecord says which belong to a row
  Section stringTable;    // bytes (stride 1)
  Section nicTable;       // NicRecord: those of the first host, then those of the next; HostRecord says which are whose

  uint32_t rings;  // of each shape
  uint32_t trees;  // of each shape
  uint32_t hostRings;
  uint32_t hostTrees;

  // On GPUs (plan/launch_format.h). Pairs have pairStepBytes on the first `wideChannels` channels.
  uint32_t wideChannels;
  uint32_t narrowStepBytes;
  uint32_t lineSteps;
  uint32_t llStepBytes;
  uint32_t ll128StepBytes;
  uint32_t smsPerLaunch;  // maximum number of blocks of a launch, which take the first channels

  // How long a call on GPUs waits for the other ranks' consent to copy engines.
  uint32_t minCopyTimeoutMicroseconds;
  uint32_t maxCopyTimeoutMicroseconds;
  uint32_t capturedCopyTimeoutMicroseconds;

  // The network between hosts: its backend, and how the socket backend uses it.
  uint8_t sockets;         // of each connection that a rank makes, 1 to kMaxSockets
  uint8_t socketThreads;   // helper threads of each process, 0 to kMaxSocketThreads
  uint16_t pairChannels;   // on GPUs: the first ones, on which ranks of different hosts have connections; those of a
                           // rail (of equal local index) have them on all
  uint32_t networkOffset;  // name of the backend, into stringTable: "Socket"; no bytes: no connection uses a network
  uint32_t networkBytes;
  Section gpuNicTable;          // GpuNicRecord, on GPUs of several hosts: this host's
  Section aggregatorTable;      // AggregatorRecord: what reduces in place of the network; empty: its own groups do
  uint8_t aggregatorToken[16];  // of the job
};

// A connection with helper threads has one socket more, which the caller moves: 64 in all.
inline constexpr uint8_t kMaxSockets = 63;
inline constexpr uint8_t kMaxSocketThreads = 16;

struct HostRecord {
  uint32_t nameOffset;  // into stringTable
  uint32_t nameBytes;
  uint32_t addressOffset;  // numeric IPv4 or IPv6 address, as text
  uint32_t addressBytes;
  uint32_t shape;        // into shapeTable
  uint32_t firstMember;  // into memberTable
  uint32_t firstNic;     // into nicTable
  uint32_t nicCount;
};

// One port of a network adapter that the plan uses. A NIC's index is its position among those of its host. NICs of
// equal index reach each other (they are one rail); whether others do, the plan does not say.
struct NicRecord {
  uint32_t nameOffset;  // into stringTable: "eth0", "mlx5_0"
  uint32_t nameBytes;
  uint32_t addressOffset;  // numeric IPv4 or IPv6 address, as text; a link-local one with its scope: "fe80::1%eth0"
  uint32_t addressBytes;
  uint32_t speedMbps;  // 0: unknown
  uint32_t port;       // number of the port on its card; 0: the card has one, or the NIC is an interface
  uint8_t gpuDirect;   // 1: reads and writes GPU memory
  uint8_t reserved[7];
};

// Whether the plan lets a card read or write a GPU's memory (GPUDirect), else why not.
enum class GpuDirect : uint8_t {
  allowed = 0,
  tooFar = 1,      // than NCCL_NET_GDR_LEVEL
  gpuRefuses = 2,  // the GPU lets no card reach its memory
  noReads = 3,     // what is sent is not read there (NCCL_NET_GDR_READ)
};

// A network card as the GPU of one local rank has it.
struct GpuNicRecord {
  uint64_t card;     // its PCI address without the function: domain << 16 | bus << 8 | device; kAnyCard: one that no
                     // record of the rank names
  uint32_t local;    // the rank's local index
  uint8_t receives;  // GpuDirect: the card writes the GPU's memory
  uint8_t sends;     // GpuDirect: it reads the GPU's memory
  uint8_t reserved[2];
  char path[4];  // type of the path between them, NCCL's word: "PXB"
  uint32_t reserved2;
};
inline constexpr uint64_t kAnyCard = ~uint64_t(0);

// An aggregator of the job (aggregator/aggregator.h).
struct AggregatorRecord {
  uint32_t addressOffset;  // into stringTable: numeric IPv4 or IPv6 address, as text
  uint32_t addressBytes;
  uint32_t port;
  uint32_t reserved;
};

// A ring goes through the hosts in the order of a ring of hosts, and through each as its shape says; a tree likewise.
struct ChannelRecord {
  uint32_t ring;
  uint32_t hostRing;
  uint32_t tree;
  uint32_t hostTree;
  uint32_t rail;  // index of the NICs by which its ring leaves a host and comes to the next; 0 where no network is used
};

// How the ranks of one host lie in rings and trees. Equal hosts share one.
struct ShapeRecord {
  uint32_t ranks;
  uint32_t firstRing;  // entry of ringTable
  uint32_t firstTree;  // entry of treeTable
  uint32_t reserved;
};

// Record i of a ring of hosts.
struct HostRingRecord {
  uint32_t host;           // the i-th on the way
  uint32_t firstPosition;  // in rings of ranks, of host i
};

// Of one host in one tree of hosts.
struct HostTreeRecord {
  uint32_t parent;      // the root's is itself
  uint32_t attachment;  // local index of the parent's rank that the top of this host hangs on
};

struct PeerRecord {
  uint32_t host;
  uint32_t localIndex;
  uint32_t listenPort;
  // Index of the NICs, at both ends, of the pair connections by which this rank receives from other hosts; kNoNic: it
  // has none. So the two ends of a pair agree, and a pair stays on one rail.
  uint32_t pairNic;
};

struct LocalRecord {
  uint32_t rank;
  uint32_t firstEdge;
  uint32_t edgeCount;
  uint32_t pairNic;  // as the rank's PeerRecord has it
};

// One end of a connection as one local rank has it. Both ends of a shm edge name the same segment offset. Pairs are not
// listed: they follow a rule (PeerRecord::pairNic, Header::pairSteps), and so do trees, which use pairs' connections.
struct EdgeRecord {
  uint32_t channel;
  uint32_t peer;  // rank at the other end
  uint8_t transport;
  uint8_t sends;           // 1: we send, 0: we receive
  uint8_t kind;            // EdgeKind
  uint8_t gpuDirect;       // 1: the NIC reads and writes the slots in GPU memory
  uint16_t nic;            // of this host; kNoNic for shared memory
  uint16_t peerNic;        // of the peer's host; kNoNic likewise
  uint32_t steps;          // slots
  uint32_t stepBytes;      // of a slot
  uint64_t segmentOffset;  // of the Connection in the host segment; an edge over a network has a private one and 0 here
};

struct TuningRecord {
  uint8_t collective;
  uint8_t reserved[3];
  uint32_t firstVariant;
  uint32_t variantCount;
  uint32_t reserved2;
  uint64_t upToBytes;  // inclusive; ~0 for the last row. Size of the larger of send and receive buffer of one rank
};

struct VariantRecord {
  uint8_t algorithm;
  uint8_t protocol;
  uint16_t channels;
  uint32_t threads;
  uint64_t chunkBytes;
  uint32_t requires_;
  float predictedMicroseconds;             // of an operation of no bytes; 0: nothing is predicted
  float predictedMicrosecondsPerMebibyte;  // more, of the size by which the row is chosen
  uint32_t flags;                          // kAsMessages
};

static_assert(sizeof(Section) == 16 && sizeof(HostRecord) == 32 && sizeof(PeerRecord) == 16 &&
              sizeof(LocalRecord) == 16 && sizeof(ChannelRecord) == 20 && sizeof(ShapeRecord) == 16 &&
              sizeof(HostRingRecord) == 8 && sizeof(HostTreeRecord) == 8);
static_assert(sizeof(EdgeRecord) == 32 && sizeof(NicRecord) == 32 && sizeof(GpuNicRecord) == 24 &&
              sizeof(TuningRecord) == 24 && sizeof(VariantRecord) == 32 && sizeof(AggregatorRecord) == 16);
static_assert(sizeof(Header) == 480);

}  // namespace ncclrun::plan
