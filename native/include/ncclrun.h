/* ncclrun.h: what is ours beyond nccl.h. C interface of libnccl.so.2.
 *
 * The host device: buffers are ordinary memory, and a host stream stands in for cudaStream_t. With NCCLRUN_DEVICE=host
 * (or no GPU) every nccl.h call takes an ncclrunStream_t cast to cudaStream_t; NULL is the process's default host
 * stream. Where several ranks of one communicator live in one process, each has a default stream of its own, and
 * so has every thread that makes communicators; to the functions below NULL then means those of the ranks that the
 * calling thread made or used. */
#ifndef NCCLRUN_H_
#define NCCLRUN_H_

#include <stddef.h>
#include <stdint.h>

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of ncclrun and a hash of what the engine was built from, "0.1.0+1a2b3c4d". Static storage. */
const char* ncclrunVersion(void);

/* Where a communicator and its buffers live. Automatic: as NCCLRUN_DEVICE says (cuda, host, or auto: a GPU where there
 * is one). */
typedef enum { ncclrunDeviceAutomatic = 0, ncclrunDeviceHost = 1, ncclrunDeviceCuda = 2 } ncclrunDevice_t;
/* ncclMemAlloc for a device; freed by ncclMemFree. */
ncclResult_t ncclrunMemAlloc(void** ptr, size_t size, ncclrunDevice_t device);

/* ---- Host streams. Operations of one stream run in order; different streams run at the same time. ---- */
typedef struct ncclrunStream* ncclrunStream_t;

ncclResult_t ncclrunStreamCreate(ncclrunStream_t* stream);
/* Waits for what is queued, then frees the stream. */
ncclResult_t ncclrunStreamDestroy(ncclrunStream_t stream);
/* Returns when everything queued before the call has ended; the first error of an operation since the last call, if
 * any. */
ncclResult_t ncclrunStreamSynchronize(ncclrunStream_t stream);
/* ncclSuccess: nothing is queued or running; ncclInProgress otherwise. */
ncclResult_t ncclrunStreamQuery(ncclrunStream_t stream);
/* Lends the calling thread to the stream for about this long: it runs what is queued, callbacks too, and polls for
 * peers; what is left when the time is up goes on on an engine thread. ncclInProgress: something is left. Else all has
 * ended, and this is what ncclrunStreamSynchronize would say. The time bounds waiting, not the work on large buffers;
 * with 0 nothing runs on the calling thread. Lend the thread after every operation on a stream, or never: what is
 * queued on the stream of a lender begins with the next borrowed. */
ncclResult_t ncclrunStreamLend(ncclrunStream_t stream, uint64_t nanoseconds);
/* Calls function(argument, result) from an engine thread (or one that is lent to the stream) when everything queued
 * before has ended. It must not call this interface. */
ncclResult_t ncclrunStreamCallback(ncclrunStream_t stream, void (*function)(void* argument, ncclResult_t result),
                                   void* argument);

/* ---- Barriers ---- */
/* Barrier of the communicator, queued on a stream like a collective. */
ncclResult_t ncclrunBarrier(ncclComm_t comm, ncclrunStream_t stream);
/* Barrier of this host's ranks of the communicator; returns when all have called it. */
ncclResult_t ncclrunNodeBarrier(ncclComm_t comm);

/* ---- GPUs: what a program needs of CUDA to use the CUDA device, for programs that do not have CUDA itself. All speak
 * of the calling thread's current GPU; ncclUnhandledCudaError with the driver's words. ncclMemAlloc gives memory. ----
 */
typedef struct CUevent_st* ncclrunGpuEvent_t;
typedef struct ncclrunGpuGraph* ncclrunGpuGraph_t;

/* How many there are; 0 with a sentence in ncclGetLastError where CUDA cannot be used. */
ncclResult_t ncclrunGpuCount(int* count);
/* The calling thread's current GPU, by CUDA's number. */
ncclResult_t ncclrunGpuUse(int device);
/* Pinned memory of the host, which GPUs reach by themselves; freeing it may wait for the current GPU. */
ncclResult_t ncclrunGpuHostAlloc(void** memory, size_t bytes);
ncclResult_t ncclrunGpuHostFree(void* memory);
/* Queues a copy between any two of host and GPU memory; memory of the host must stay until the copy has ended. With
 * memory of the host that is not pinned the call may wait until the stream has come to the copy. */
ncclResult_t ncclrunGpuCopy(void* to, const void* from, size_t bytes, cudaStream_t stream);
/* Queues the setting of all bytes to `value`. */
ncclResult_t ncclrunGpuSet(void* to, int value, size_t bytes, cudaStream_t stream);

/* A stream that does not wait for the default one. */
ncclResult_t ncclrunGpuStreamCreate(cudaStream_t* stream);
ncclResult_t ncclrunGpuStreamDestroy(cudaStream_t stream);
ncclResult_t ncclrunGpuStreamSynchronize(cudaStream_t stream);
/* ncclSuccess: all has ended; ncclInProgress otherwise. */
ncclResult_t ncclrunGpuStreamQuery(cudaStream_t stream);
/* Calls function(argument) on a thread of the driver when everything queued before has ended, whether it failed or not.
 * It must not call CUDA or this interface, and what is queued behind waits for it. */
ncclResult_t ncclrunGpuStreamCallback(cudaStream_t stream, void (*function)(void* argument), void* argument);

ncclResult_t ncclrunGpuEventCreate(ncclrunGpuEvent_t* event);
ncclResult_t ncclrunGpuEventDestroy(ncclrunGpuEvent_t event);
ncclResult_t ncclrunGpuEventRecord(ncclrunGpuEvent_t event, cudaStream_t stream);
/* What is queued on the stream from now on begins after the event. */
ncclResult_t ncclrunGpuEventWait(cudaStream_t stream, ncclrunGpuEvent_t event);
/* Between two recorded events that have happened. */
ncclResult_t ncclrunGpuEventElapsed(ncclrunGpuEvent_t from, ncclrunGpuEvent_t to, float* milliseconds);

/* What the stream is given between the two calls becomes a graph instead of running. */
ncclResult_t ncclrunGpuCaptureBegin(cudaStream_t stream);
ncclResult_t ncclrunGpuCaptureEnd(cudaStream_t stream, ncclrunGpuGraph_t* graph);
ncclResult_t ncclrunGpuGraphLaunch(ncclrunGpuGraph_t graph, cudaStream_t stream);
ncclResult_t ncclrunGpuGraphDestroy(ncclrunGpuGraph_t graph);

/* ---- The job ---- */
/* The communicator of all ranks of the job, as ncclrun's environment names it (NCCLRUN_UNIQUE_ID, NCCLRUN_RANK,
 * NCCLRUN_SIZE): what to pass to ncclCommInitRank. ncclInvalidUsage with a sentence outside a job. */
ncclResult_t ncclrunGetJob(ncclUniqueId* uniqueId, int* size, int* rank);

/* A communicator's queue holds 4096 calls and groups of calls that have not begun. Where it is full, a call on a
 * blocking communicator waits until there is room; on a non-blocking one it returns ncclInProgress, the operation is
 * taken, and ncclCommGetAsyncError says ncclInProgress until there is room. After this call the queue takes as many as
 * memory holds, for callers that can neither wait nor ask again. */
ncclResult_t ncclrunCommLetQueueGrow(ncclComm_t comm);

/* ncclCommInitRank in two steps. The first returns at once; the second waits until the communicator is ready, or failed
 * and is freed, and follows once, on any thread. ncclCommAbort may be called in between and meanwhile. */
ncclResult_t ncclrunCommBegin(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclrunDevice_t device);
ncclResult_t ncclrunCommWait(ncclComm_t comm);

/* ncclCommAbort for all ranks: the communicator ends at the others, too, whether or not they wait for this one. The
 * reason is part of what their errors say; NULL: none. Copied. */
ncclResult_t ncclrunCommAbort(ncclComm_t comm, const char* reason);

/* ---- Who is where ---- */
typedef struct {
  uint32_t rank, size;           /* in the communicator */
  uint32_t localRank, localSize; /* among the ranks of this host */
  uint32_t host, hosts;
} ncclrunCommInfo;
ncclResult_t ncclrunCommGetInfo(ncclComm_t comm, ncclrunCommInfo* info);
/* Name of host `index` (0..hosts-1); valid until the communicator is destroyed. */
ncclResult_t ncclrunCommHostName(ncclComm_t comm, uint32_t index, const char** name);
/* A NIC by which a host of the communicator reaches the others. NICs of equal index are one rail. */
typedef struct {
  char name[64];      /* of the interface or card: "eth0"; cut off if longer */
  char address[64];   /* numeric; a link-local one with its scope */
  uint32_t speedMbps; /* 0: unknown */
  uint32_t port;      /* number on the card; 0 for an interface */
  uint32_t gpuDirect; /* 1: reads and writes GPU memory */
} ncclrunNic;
/* In: *count entries fit into nics. Out: *count is how many host `index` has; min(both) were written. A communicator of
 * one host has none, unless its ranks reach each other by sockets. */
ncclResult_t ncclrunCommGetNics(ncclComm_t comm, uint32_t index, ncclrunNic* nics, size_t* count);

/* ---- The network between the hosts of a job, by itself, without a communicator: for programs that measure it. ---- */
#define NCCLRUN_NET_SIZES 16
/* Messages from a NIC of one host to a NIC of another. */
typedef struct {
  uint32_t from, to;                   /* hosts, by index */
  uint32_t fromNic, toNic;             /* index among the NICs of the host */
  double latencyUs, latency99Us;       /* of 8 bytes one way: half a round trip, median and 99th percentile */
  double gigabytes[NCCLRUN_NET_SIZES]; /* 10^9 bytes per second, by size */
  int64_t retransmits; /* packets that TCP has sent again, of `sentBytes`; -1: the network does not tell */
  uint64_t sentBytes;
  char error[1024]; /* why the pair was not measured; empty: it was */
} ncclrunNetPair;
/* Called on the calling thread: `network` and then `host` for each host once, `pair` for each direction of a pair. */
typedef struct {
  void* argument;
  void (*network)(void* argument, const char* name, uint32_t hosts);
  void (*host)(void* argument, uint32_t index, const char* name, const ncclrunNic* nics, size_t count);
  void (*pair)(void* argument, const ncclrunNetPair* pair);
} ncclrunNetListener;
/* Measures the network that a communicator of all ranks of the job would use: between the first ranks of each two
 * hosts, one pair after another, NICs of equal index or all. All ranks call it, with equal arguments, and every rank is
 * told of all pairs. A pair that cannot be measured is no error. Up to NCCLRUN_NET_SIZES sizes of messages, in bytes.
 */
ncclResult_t ncclrunMeasureNetwork(const uint64_t* sizes, size_t count, int allNics,
                                   const ncclrunNetListener* listener);

/* What NCCL_NET_PLUGIN and NCCL_NET come to on this host, for programs that show it. Called on the calling thread:
 * `passedOver` for each plugin that does not serve, with the reason, and then `serves` for the first one that does,
 * with its devices (their addresses are empty). Without a plugin that serves, InfiniBand or sockets do. An error:
 * NCCL_NET_PLUGIN asks for a library that cannot be used, and no other one serves; jobs end with the same sentence. */
typedef struct {
  void* argument;
  void (*passedOver)(void* argument, const char* reason);
  void (*serves)(void* argument, const char* name, const ncclrunNic* nics, size_t count);
} ncclrunPluginListener;
ncclResult_t ncclrunFindNetworkPlugin(const ncclrunPluginListener* listener);

/* ---- Aggregators ---- */
/* What the program ncclrun-aggregator does: serves as an aggregator of a job until the agent, which is at the other end
 * of the socket, closes it. Returns the exit status. */
int ncclrunServeAggregator(int socket);

/* ---- A communicator from a plan given by hand, without an agent (tests, tools). ----
 * plan: a HostPlan (native/plan/plan_format.h), copied. segmentFd: memory of at least the plan's segmentBytes, zeroed,
 * shared by the local ranks; not closed. listenFd: a listening TCP socket that serves this rank's connections from
 * other hosts, or -1; taken over. */
ncclResult_t ncclrunCommInitPlan(ncclComm_t* comm, const void* plan, size_t planBytes, int segmentFd, uint32_t rank,
                                 int listenFd);

/* ---- What went over each connection ---- */
typedef struct {
  uint32_t channel;   /* of a ring connection; ~0 for the pair connection of two ranks */
  uint32_t peer;      /* rank at the other end */
  uint32_t sends;     /* 1: we send, 0: we receive */
  uint32_t transport; /* native/plan/plan_format.h, Transport */
  uint64_t bytes;     /* payload so far */
} ncclrunEdge;
/* In: *count entries fit into edges. Out: *count is how many there are; min(both) were written. Pair connections appear
 * at first use. */
ncclResult_t ncclrunCommGetEdges(ncclComm_t comm, ncclrunEdge* edges, size_t* count);

/* ---- How operations are carried out. For programs that measure what a plan's variants take. ---- */
typedef struct {
  uint32_t algorithm, protocol; /* native/plan/plan_format.h, Algorithm and Protocol */
  uint32_t channels, threads;
  uint64_t upToBytes; /* of the plan's row; ~0: all larger sizes */
} ncclrunVariant;
/* The variant that the plan has for operations of so many bytes (of the larger of a rank's two buffers) of a collective
 * (native/plan/plan_format.h, Collective). */
ncclResult_t ncclrunCommGetVariant(ncclComm_t comm, uint32_t collective, uint64_t bytes, ncclrunVariant* variant);
/* From now on the variant of each operation is chosen as if it had so many bytes; ~0: by its own. All ranks must say
 * the same between the same operations. */
ncclResult_t ncclrunCommChooseAs(ncclComm_t comm, uint64_t bytes);

/* ---- The telemetry pages of a process: made and owned by the agent, written by the engine, read by anybody who has
 * them. An engine that has more communicators than slots asks for another page. ---- */
#define NCCLRUN_TELEMETRY_BYTES 8192
#define NCCLRUN_TELEMETRY_SLOTS 40
#define NCCLRUN_TELEMETRY_MAGIC 0x5054434eu /* "NCTP" */
enum {
  ncclrunStateFree = 0,
  ncclrunStateIdle = 1,
  ncclrunStateQueued = 2,
  ncclrunStateRunning = 3,
  ncclrunStateWaiting = 4,
  ncclrunStateFailed = 5
};
/* One communicator. Every field is written by one thread at a time with relaxed atomic stores; `operation` last,
 * released. */
typedef struct {
  uint64_t communicator; /* bytes 16..23 of the unique id, which are random (control/messages/bootstrap.ts) */
  uint32_t rank, size;
  uint64_t operation;      /* number of the operation last begun, from 1 */
  uint64_t completed;      /* number of the operation last ended */
  uint64_t bytes;          /* of the operation last begun */
  uint64_t lastProgressNs; /* CLOCK_MONOTONIC of the last step that moved */
  uint64_t operationHash;  /* rolling hash of {kind, type, operator, count, root} of all operations so far */
  uint64_t startedNs;      /* CLOCK_MONOTONIC when `operation` began */
  uint32_t collective;     /* native/plan/plan_format.h, Collective, of the operation last begun */
  uint32_t state;          /* ncclrunState… */
  uint32_t waitingFor;     /* rank waited for, ~0 none */
  uint32_t epoch;
  uint32_t lostPeer; /* 1 + rank whose loss the program was told as an error; 0 none. Stays after `state`
                        is free, until the slot is taken again. */
  uint32_t call;     /* of the operation last begun: type, operator << 8, root or peer (16 bits of it) << 16 */
  uint64_t hashed;   /* how many operations, those but sends and receives, have begun; written after recentHashes */
  uint16_t recentHashes[36]; /* 16 bits of the rolling hash up to and including the k-th of them, at k % 36 */
  uint32_t left;             /* not 0: the communicator has been left; its last kernels may still write here */
  uint32_t reserved;
  uint64_t hashedBytes; /* of the last of them: as `bytes`, `collective` and `call` */
  uint32_t hashedCollective;
  uint32_t hashedCall;
} ncclrunTelemetrySlot; /* 192 bytes */
typedef struct {
  uint32_t magic, version;
  uint32_t pid;
  int32_t jobRank; /* -1 unknown */
  uint64_t reserved[62];
  ncclrunTelemetrySlot slots[NCCLRUN_TELEMETRY_SLOTS];
} ncclrunTelemetryPage; /* 512 + 40*192 = 8192 bytes */

/* ---- The flight recorder of a process: made and owned by the agent, beside the telemetry pages; the engine writes
 * the last operations of all communicators into it, and the agent reads them whatever became of the process. ---- */
#define NCCLRUN_RECORDER_BYTES 2445312
#define NCCLRUN_RECORDER_MAGIC 0x5246434eu /* "NCFR" */
#define NCCLRUN_RECORDER_ENTRIES 4096
#define NCCLRUN_RECORDER_COMMUNICATORS 256
#define NCCLRUN_RECORDER_EDGES 512
#define NCCLRUN_RECORDER_GPUS 8 /* of one process whose kernels record replays */
/* Bits of `flags`. */
enum {
  ncclrunRecordInGroup = 1,          /* queued together with others */
  ncclrunRecordCaptured = 2,         /* recorded into a CUDA graph: its replays have entries of their own */
  ncclrunRecordInPlace = 4,          /* reads and writes one buffer */
  ncclrunRecordGpuStamp = 8,         /* a kernel writes startedNs and endedNs: stamps */
  ncclrunRecordFailed = 16,          /* ended with an error of its own */
  ncclrunRecordAborted = 32,         /* ended by an interrupt: the loss of a peer, or an abort */
  ncclrunRecordCancelled = 64,       /* never began: the communicator was broken before */
  ncclrunRecordCopyEngine = 128,     /* reserved */
  ncclrunRecordWaitedOnStream = 256, /* reserved */
  ncclrunRecordSend = 512,           /* sendRecv: this end sends */
  ncclrunRecordOnGpu = 1024,         /* the GPU runs it: the host does not see when it begins and ends */
  ncclrunRecordReplay = 2048         /* of a ring of `replays`: a kernel of a CUDA graph wrote all of it */
};
/* One operation. Plain stores; `sequence` is 0 while the other fields are written, and is released last. */
typedef struct {
  uint64_t sequence;   /* number of the record in this process, from 1 */
  uint64_t enqueuedNs; /* CLOCK_MONOTONIC of the call */
  uint64_t startedNs;  /* of the first step; 0 not yet, or not known */
  uint64_t endedNs;    /* of its end; 0 not yet, or not known */
  uint64_t count;      /* elements, as in the call */
  uint32_t operation; /* low half of its number: of the communicator's collectives, or of the ordered pair's messages */
  uint32_t peer;      /* root or peer in the communicator; ~0 none */
  uint32_t lastPeer;  /* whom it waited for last; ~0 nobody, or not known */
  uint16_t communicator; /* index into `communicators` */
  uint16_t hash;         /* of the rolling hash up to and including it, as recentHashes; 0 for sends and receives */
  uint16_t flags;        /* ncclrunRecord… */
  uint8_t collective;    /* native/plan/plan_format.h, as the next two */
  uint8_t call;          /* ncclDataType_t, operator << 4 */
  uint8_t algorithm;
  uint8_t protocol;
  uint8_t channels;
  uint8_t stream;       /* 255 not known; of a replayed collective: how many others precede it in its launch */
} ncclrunRecorderEntry; /* 64 bytes */
/* A communicator that entries name. It belongs to those whose sequence is at least firstSequence. */
typedef struct {
  uint64_t communicator;  /* as in the telemetry's slot */
  uint64_t firstSequence; /* 0: this one is free, or is being written */
  uint32_t epoch, size, rank;
  uint32_t generation;         /* how many communicators have had this index */
  char name[32];               /* zero-terminated; of ncclConfig_t, or empty */
} ncclrunRecorderCommunicator; /* 64 bytes */
/* A stamp has 48 bits of the GPU's clock, in nanoseconds, and above them (sequence - 1) / 4096 of its operation:
 * kernels do not look whether the ring has wrapped. Two readings of a GPU's clock: its time plus an offset, modulo
 * 2^64, is CLOCK_MONOTONIC. */
typedef struct {
  uint64_t sequence; /* 0: never read; odd while it is written */
  uint64_t firstNs;  /* CLOCK_MONOTONIC of the reading */
  uint64_t firstOffset;
  uint64_t lastNs;
  uint64_t lastOffset;
  uint32_t firstErrorNs; /* by which the offset may be wrong */
  uint32_t lastErrorNs;
  uint64_t reserved[2];
} ncclrunRecorderClock; /* 64 bytes */
/* One direction of a connection over the network, of which both ends have one. Counters from its beginning. */
typedef struct {
  uint64_t sequence;     /* 0: free; odd: being written; changes with every connection that has this place */
  uint64_t handed;       /* messages that the network was given: to send, or room to receive */
  uint64_t carried;      /* of these, those that it has sent, or that have arrived */
  uint64_t bytes;        /* of payload, of messages that were carried */
  uint64_t busyNs;       /* of a sender: while the network had something to send */
  uint64_t lastNs;       /* CLOCK_MONOTONIC of the last message that was carried */
  uint64_t wireBytes;    /* of a sender, if its network knows: what the other side has acknowledged, */
  uint64_t wireBusyNs;   /* while something waited for that and the other side had room; read a few times a second */
  uint32_t retransmits;  /* packets that were sent again */
  uint32_t peer;         /* rank in the communicator */
  uint16_t communicator; /* index into `communicators` */
  uint16_t channel;
  uint8_t sends;
  uint8_t reserved[3];
  char nic[48];        /* zero-terminated: of this end */
} ncclrunRecorderEdge; /* 128 bytes */
typedef struct {
  uint32_t magic, version;
  uint32_t pid;
  int32_t jobRank;       /* -1 unknown */
  uint64_t lastSequence; /* number of the record begun last */
  uint32_t unlisted;     /* communicators that found no free index: their operations are not recorded */
  uint32_t reserved32;
  ncclrunRecorderClock clocks[NCCLRUN_RECORDER_GPUS];
  uint8_t clockOf[NCCLRUN_RECORDER_COMMUNICATORS]; /* 1 + index of the GPU's clock, by communicator; 0 none */
  uint64_t reserved[412];
  ncclrunRecorderEntry entries[NCCLRUN_RECORDER_ENTRIES];
  ncclrunRecorderCommunicator communicators[NCCLRUN_RECORDER_COMMUNICATORS];
  /* Replayed operations: a ring for each GPU, because a GPU counts its replays in memory of its own. The kernel that
   * runs an operation writes its entry. enqueuedNs equals startedNs, lastPeer is the generation of the
   * communicator, and `operation` counts what is captured apart: a
   * collective among those with its number in the launch, a message among those of its ordered pair. */
  ncclrunRecorderEntry replays[NCCLRUN_RECORDER_GPUS][NCCLRUN_RECORDER_ENTRIES];
  ncclrunRecorderEdge edges[NCCLRUN_RECORDER_EDGES];
} ncclrunRecorder; /* 4096 + 4096*64 + 256*64 + 8*4096*64 + 512*128 = 2445312 bytes */

#ifdef __cplusplus
}
static_assert(sizeof(ncclrunTelemetrySlot) == 192 && sizeof(ncclrunTelemetryPage) == NCCLRUN_TELEMETRY_BYTES);
static_assert(sizeof(ncclrunRecorderEntry) == 64 && sizeof(ncclrunRecorderCommunicator) == 64 &&
              sizeof(ncclrunRecorderClock) == 64 && sizeof(ncclrunRecorderEdge) == 128 &&
              sizeof(ncclrunRecorder) == NCCLRUN_RECORDER_BYTES);
#endif
#endif
