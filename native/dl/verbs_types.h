// What libibverbs reads and writes: structures and numbers as rdma-core has them (infiniband/verbs.h, its stable binary
// interface), as far as we use them. Declared here, so that the engine builds on machines without rdma-core. Objects
// that the library makes are larger than what is declared; we never make one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace ncclrun::verbs {

struct CompletionQueue;
struct Completion;
struct QueuePair;
struct SendWorkRequest;
struct ReceiveWorkRequest;

using Device = struct ibv_device*;

struct Context {
  Device device;
  void* operations[11];
  // Inline in the library's header: there are no symbols for these four. Each post returns an errno.
  int (*pollCq)(CompletionQueue*, int, Completion*);
  int (*requestNotify)(CompletionQueue*, int solicitedOnly);
  void* moreOperations[12];
  int (*postSend)(QueuePair*, SendWorkRequest*, SendWorkRequest** failed);
  int (*postReceive)(QueuePair*, ReceiveWorkRequest*, ReceiveWorkRequest** failed);
  void* otherOperations[5];
  int commandDescriptor;
  int asyncDescriptor;
  int completionVectors;
};
static_assert(offsetof(Context, pollCq) == 96 && offsetof(Context, requestNotify) == 104);
static_assert(offsetof(Context, postSend) == 208 && offsetof(Context, postReceive) == 216);
static_assert(offsetof(Context, asyncDescriptor) == 268 && offsetof(Context, completionVectors) == 272);

struct ProtectionDomain {
  Context* context;
};

struct CompletionChannel {
  Context* context;
  int descriptor;
};
static_assert(offsetof(CompletionChannel, descriptor) == 8);

struct CompletionQueue {
  Context* context;
  CompletionChannel* channel;
  void* owner;
};

struct MemoryRegion {
  Context* context;
  ProtectionDomain* domain;
  void* address;
  size_t bytes;
  uint32_t handle;
  uint32_t localKey;
  uint32_t remoteKey;
};
static_assert(offsetof(MemoryRegion, localKey) == 36 && offsetof(MemoryRegion, remoteKey) == 40);

struct QueuePair {
  Context* context;
  void* owner;
  ProtectionDomain* domain;
  CompletionQueue* sendQueue;
  CompletionQueue* receiveQueue;
  void* sharedReceives;
  uint32_t handle;
  uint32_t number;
  int state;
  int type;
};
static_assert(offsetof(QueuePair, number) == 52 && offsetof(QueuePair, type) == 60);

using Gid = std::array<uint8_t, 16>;

struct QueuePairCapacity {
  uint32_t sends;
  uint32_t receives;
  uint32_t sendEntries;     // scatter-gather entries of one request
  uint32_t receiveEntries;  // the same
  uint32_t inlineBytes;
};

struct QueuePairSetup {
  void* owner;
  CompletionQueue* sendQueue;
  CompletionQueue* receiveQueue;
  void* sharedReceives;
  QueuePairCapacity capacity;
  int type;
  int signalsAll;
};
static_assert(sizeof(QueuePairSetup) == 64 && offsetof(QueuePairSetup, type) == 52);

struct alignas(8) Route {
  Gid destination;
  uint32_t flowLabel;
  uint8_t sourceIndex;  // of the own GID
  uint8_t hopLimit;
  uint8_t trafficClass;
};

struct AddressHandle {
  Route route;
  uint16_t destinationLid;
  uint8_t serviceLevel;
  uint8_t pathBits;
  uint8_t staticRate;
  uint8_t isGlobal;
  uint8_t port;
};
static_assert(sizeof(AddressHandle) == 32 && offsetof(AddressHandle, destinationLid) == 24);

struct QueuePairAttributes {
  int state;
  int currentState;
  int pathMtu;
  int migrationState;
  uint32_t queueKey;
  uint32_t receivePsn;
  uint32_t sendPsn;
  uint32_t destination;  // number of the peer's queue pair
  uint32_t access;
  QueuePairCapacity capacity;
  AddressHandle address;
  AddressHandle alternative;
  uint16_t partitionIndex;
  uint16_t alternativePartitionIndex;
  uint8_t notifiesSqDrained;
  uint8_t isSqDraining;
  uint8_t maxReadsOut;
  uint8_t maxReadsIn;
  uint8_t minRnrTimer;
  uint8_t port;
  uint8_t timeout;
  uint8_t retries;
  uint8_t rnrRetries;
  uint8_t alternativePort;
  uint8_t alternativeTimeout;
  uint32_t rateLimit;
};
static_assert(sizeof(QueuePairAttributes) == 144 && offsetof(QueuePairAttributes, address) == 56);
static_assert(offsetof(QueuePairAttributes, partitionIndex) == 120 && offsetof(QueuePairAttributes, port) == 129);
static_assert(offsetof(QueuePairAttributes, rnrRetries) == 132);

struct ScatterGather {
  uint64_t address;
  uint32_t bytes;
  uint32_t localKey;
};

struct SendWorkRequest {
  uint64_t id;
  SendWorkRequest* next;
  ScatterGather* entries;
  int entryCount;
  int opcode;
  uint32_t flags;
  uint32_t immediate;  // big-endian by custom
  uint64_t remoteAddress;
  uint32_t remoteKey;
  uint8_t others[76];
};
static_assert(sizeof(SendWorkRequest) == 128 && offsetof(SendWorkRequest, remoteAddress) == 40);

struct ReceiveWorkRequest {
  uint64_t id;
  ReceiveWorkRequest* next;
  ScatterGather* entries;
  int entryCount;
};
static_assert(sizeof(ReceiveWorkRequest) == 32);

// Of one with an error only id, status, vendorError and queuePair are valid.
struct Completion {
  uint64_t id;
  int status;
  int opcode;
  uint32_t vendorError;
  uint32_t bytes;
  uint32_t immediate;  // big-endian by custom
  uint32_t queuePair;  // number
  uint32_t sourceQueuePair;
  uint32_t flags;
  uint16_t partitionIndex;
  uint16_t sourceLid;
  uint8_t serviceLevel;
  uint8_t pathBits;
};
static_assert(sizeof(Completion) == 48 && offsetof(Completion, queuePair) == 28);

struct AsyncEvent {
  union {
    CompletionQueue* completionQueue;
    QueuePair* queuePair;
    int port;
  } element;
  int type;
};
static_assert(sizeof(AsyncEvent) == 16);

namespace qp_state {
inline constexpr int kReset = 0, kInit = 1, kReadyToReceive = 2, kReadyToSend = 3, kError = 6;
}
namespace qp_mask {
inline constexpr int kState = 0x1, kAccess = 0x8, kPartition = 0x10, kPort = 0x20, kAddress = 0x80, kMtu = 0x100,
                     kTimeout = 0x200, kRetries = 0x400, kRnrRetries = 0x800, kReceivePsn = 0x1000,
                     kMaxReadsOut = 0x2000, kMinRnrTimer = 0x8000, kSendPsn = 0x1'0000, kMaxReadsIn = 0x2'0000,
                     kDestination = 0x10'0000;
}
namespace access {
inline constexpr int kLocalWrite = 1, kRemoteWrite = 2, kRemoteRead = 4, kRelaxedOrdering = 0x10'0000;
}
namespace send_opcode {
inline constexpr int kWrite = 0, kWriteWithImmediate = 1, kRead = 4;
}
namespace send_flag {
inline constexpr uint32_t kSignaled = 2, kInline = 8;
}
namespace completion_status {
inline constexpr int kSuccess = 0, kLocalOperation = 2, kFlushed = 5, kRetryExceeded = 12, kRnrRetryExceeded = 13;
}
namespace event {
inline constexpr int kCompletionQueueError = 0, kQueuePairFatal = 1, kQueuePairRequestError = 2,
                     kQueuePairAccessError = 3, kDeviceFatal = 8, kPortActive = 9, kPortError = 10, kLidChange = 11,
                     kGidChange = 18;
}
inline constexpr int kReliableConnection = 2;
inline constexpr int kReceivedWithImmediate = 129;  // opcode of a completion

}  // namespace ncclrun::verbs
