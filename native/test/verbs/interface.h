// The binary interface of libibverbs as the stand-in implements it. It is declared independently of native/dl/verbs.h
// on purpose: two readings of the same interface check each other wherever the engine runs on the stand-in.
#pragma once
#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace stand_in_verbs {

union Gid {
  uint8_t raw[16];
  uint64_t halves[2];  // subnet prefix and interface, big-endian
};

struct Device {
  void* operations[2];
  int nodeType;
  int transportType;
  char name[64];
  char characterDevice[64];
  char characterDevicePath[256];
  char path[256];
};
static_assert(sizeof(Device) == 664 && offsetof(Device, name) == 24 && offsetof(Device, characterDevice) == 88);
static_assert(offsetof(Device, characterDevicePath) == 152 && offsetof(Device, path) == 408);

struct Completion;
struct CompletionQueueHandle;
struct QueuePairHandle;
struct SendRequest;
struct ReceiveRequest;

struct ContextHandle {
  Device* device;
  void* before[11];
  int (*pollCq)(CompletionQueueHandle*, int, Completion*);
  int (*requestNotification)(CompletionQueueHandle*, int);
  void* between[12];
  int (*postSend)(QueuePairHandle*, SendRequest*, SendRequest**);
  int (*postReceive)(QueuePairHandle*, ReceiveRequest*, ReceiveRequest**);
  void* after[5];
  int commandDescriptor;
  int eventDescriptor;
  int completionVectors;
  pthread_mutex_t mutex;
  void* extended;
};
static_assert(offsetof(ContextHandle, pollCq) == 96 && offsetof(ContextHandle, requestNotification) == 104);
static_assert(offsetof(ContextHandle, postSend) == 208 && offsetof(ContextHandle, postReceive) == 216);
static_assert(offsetof(ContextHandle, commandDescriptor) == 264 && offsetof(ContextHandle, eventDescriptor) == 268);
static_assert(offsetof(ContextHandle, completionVectors) == 272);

struct DeviceAttributes {
  char firmware[64];
  uint64_t nodeGuid, imageGuid;  // big-endian
  uint64_t maxRegistration, pageSizes;
  uint32_t vendor, part, hardware;
  int maxQueuePairs, maxWorkRequests;
  uint32_t capabilities;
  int maxScatter, maxReadScatter, maxCompletionQueues, maxCompletions, maxRegions, maxDomains;
  int maxReadsPerQueuePair, maxReadsPerEnd, maxReads, maxReadsToStart, maxReadsOfEndToStart;
  int atomics;
  int others[14];
  uint16_t maxPartitionKeys;
  uint8_t acknowledgeDelay;
  uint8_t ports;
};
static_assert(sizeof(DeviceAttributes) == 232 && offsetof(DeviceAttributes, ports) == 227);
static_assert(offsetof(DeviceAttributes, vendor) == 96 && offsetof(DeviceAttributes, maxWorkRequests) == 112);
static_assert(offsetof(DeviceAttributes, maxScatter) == 120 && offsetof(DeviceAttributes, maxCompletions) == 132);
static_assert(offsetof(DeviceAttributes, maxRegions) == 136 && offsetof(DeviceAttributes, maxReadsPerQueuePair) == 144);
static_assert(offsetof(DeviceAttributes, atomics) == 164);

// What the exported symbol ibv_query_port fills.
struct PortAttributes {
  int state, maxMtu, activeMtu, gids;
  uint32_t capabilities, maxMessage, badKeys, queueKeyViolations;
  uint16_t partitionKeys, lid, managerLid;
  uint8_t lidMask, maxVirtualLanes, managerServiceLevel, subnetTimeout, initReply;
  uint8_t width, speed, physicalState, linkLayer, flags;
};
static_assert(sizeof(PortAttributes) == 48 && offsetof(PortAttributes, partitionKeys) == 32);
static_assert(offsetof(PortAttributes, lid) == 34 && offsetof(PortAttributes, width) == 43);
static_assert(offsetof(PortAttributes, physicalState) == 45 && offsetof(PortAttributes, flags) == 47);

struct GidEntry {
  Gid gid;
  uint32_t index, port, type, interface;
};
static_assert(sizeof(GidEntry) == 32);

struct DomainHandle {
  ContextHandle* context;
  uint32_t handle;
};

struct RegionHandle {
  ContextHandle* context;
  DomainHandle* domain;
  void* address;
  size_t bytes;
  uint32_t handle, localKey, remoteKey;
};
static_assert(sizeof(RegionHandle) == 48 && offsetof(RegionHandle, localKey) == 36);

struct ChannelHandle {
  ContextHandle* context;
  int descriptor;
  int references;
};
static_assert(offsetof(ChannelHandle, descriptor) == 8);

struct CompletionQueueHandle {
  ContextHandle* context;
  ChannelHandle* channel;
  void* user;
  uint32_t handle;
  int capacity;
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  uint32_t events[2];
};
static_assert(sizeof(CompletionQueueHandle) == 128 && offsetof(CompletionQueueHandle, capacity) == 28);

struct QueuePairHandle {
  ContextHandle* context;
  void* user;
  DomainHandle* domain;
  CompletionQueueHandle* sendQueue;
  CompletionQueueHandle* receiveQueue;
  void* sharedQueue;
  uint32_t handle, number;
  int state, type;
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  uint32_t events;
};
static_assert(sizeof(QueuePairHandle) == 160 && offsetof(QueuePairHandle, number) == 52);
static_assert(offsetof(QueuePairHandle, state) == 56 && offsetof(QueuePairHandle, type) == 60);

struct Capacity {
  uint32_t sends, receives, sendScatter, receiveScatter, inlineBytes;
};

struct QueuePairOptions {
  void* user;
  CompletionQueueHandle* sendQueue;
  CompletionQueueHandle* receiveQueue;
  void* sharedQueue;
  Capacity capacity;
  int type, signalAll;
};
static_assert(sizeof(QueuePairOptions) == 64 && offsetof(QueuePairOptions, type) == 52);

struct PathAddress {
  Gid gid;
  uint32_t flow;
  uint8_t gidIndex, hops, trafficClass;
  uint16_t lid;
  uint8_t serviceLevel, pathBits, rate, isGlobal, port;
};
static_assert(sizeof(PathAddress) == 32 && offsetof(PathAddress, gidIndex) == 20 && offsetof(PathAddress, lid) == 24);
static_assert(offsetof(PathAddress, isGlobal) == 29 && offsetof(PathAddress, port) == 30);

struct QueuePairAttributes {
  int state, currentState, mtu, migration;
  uint32_t queueKey, receiveNumber, sendNumber, peer, access;
  Capacity capacity;
  PathAddress path, alternative;
  uint16_t partitionKey, alternativeKey;
  uint8_t drainNotice, draining, reads, peerReads, receiverTimer, port, timeout, retries, receiverRetries;
  uint8_t alternativePort, alternativeTimeout;
  uint32_t rateLimit;
};
static_assert(sizeof(QueuePairAttributes) == 144 && offsetof(QueuePairAttributes, receiveNumber) == 20);
static_assert(offsetof(QueuePairAttributes, capacity) == 36 && offsetof(QueuePairAttributes, path) == 56);
static_assert(offsetof(QueuePairAttributes, partitionKey) == 120 && offsetof(QueuePairAttributes, reads) == 126);
static_assert(offsetof(QueuePairAttributes, receiverTimer) == 128 && offsetof(QueuePairAttributes, retries) == 131);

struct Piece {
  uint64_t address;
  uint32_t bytes, key;
};
static_assert(sizeof(Piece) == 16);

struct SendRequest {
  uint64_t id;
  SendRequest* next;
  Piece* pieces;
  int pieceCount, opcode;
  uint32_t flags, immediate;
  uint64_t remoteAddress;
  uint32_t remoteKey;
  uint32_t unused[19];
};
static_assert(sizeof(SendRequest) == 128 && offsetof(SendRequest, opcode) == 28);
static_assert(offsetof(SendRequest, remoteAddress) == 40 && offsetof(SendRequest, remoteKey) == 48);

struct ReceiveRequest {
  uint64_t id;
  ReceiveRequest* next;
  Piece* pieces;
  int pieceCount;
};
static_assert(sizeof(ReceiveRequest) == 32 && offsetof(ReceiveRequest, pieceCount) == 24);

struct Completion {
  uint64_t id;
  int status, opcode;
  uint32_t vendorError, bytes, immediate, number, peer, flags;
  uint16_t partitionKey, lid;
  uint8_t serviceLevel, pathBits;
};
static_assert(sizeof(Completion) == 48 && offsetof(Completion, number) == 28 && offsetof(Completion, flags) == 36);

struct AsyncEvent {
  union {
    CompletionQueueHandle* completionQueue;
    QueuePairHandle* queuePair;
    int port;
  };
  int type;
};
static_assert(sizeof(AsyncEvent) == 16 && offsetof(AsyncEvent, type) == 8);

enum State { kReset, kInit, kReadyToReceive, kReadyToSend, kDraining, kSendError, kError };
enum Opcode { kWrite, kWriteImmediate, kSend, kSendImmediate, kRead };
enum SendFlag : uint32_t { kFence = 1, kSignaled = 2, kSolicited = 4, kInline = 8 };
enum Access : uint32_t {
  kLocalWrite = 1,
  kRemoteWrite = 2,
  kRemoteRead = 4,
  kRemoteAtomic = 8,
  kRelaxedOrdering = 0x100000
};
enum CompletionOpcode { kSent = 0, kWritten = 1, kHasRead = 2, kReceived = 128, kReceivedImmediate = 129 };
enum Status {
  kSuccess = 0,
  kLocalLength = 1,
  kLocalOperation = 2,
  kLocalProtection = 4,
  kFlushed = 5,
  kInvalidRequest = 9,
  kRemoteAccess = 10,
  kRemoteOperation = 11,
  kRetryExceeded = 12,
  kReceiverRetryExceeded = 13,
};
enum Event {
  kCompletionQueueError = 0,
  kQueuePairFatal = 1,
  kQueuePairAccess = 3,
  kDeviceFatal = 8,
  kPortActive = 9,
  kPortError = 10,
  kGidChange = 18,
};
enum Mask : int {
  kMaskState = 0x1,
  kMaskCurrentState = 0x2,
  kMaskAccess = 0x8,
  kMaskPartitionKey = 0x10,
  kMaskPort = 0x20,
  kMaskPath = 0x80,
  kMaskMtu = 0x100,
  kMaskTimeout = 0x200,
  kMaskRetries = 0x400,
  kMaskReceiverRetries = 0x800,
  kMaskReceiveNumber = 0x1000,
  kMaskReads = 0x2000,
  kMaskAlternative = 0x4000,
  kMaskReceiverTimer = 0x8000,
  kMaskSendNumber = 0x10000,
  kMaskPeerReads = 0x20000,
  kMaskMigration = 0x40000,
  kMaskPeer = 0x100000,
};
inline constexpr int kReliable = 2;  // type of a queue pair
inline constexpr int kLinkInfiniBand = 1, kLinkEthernet = 2;

}  // namespace stand_in_verbs
