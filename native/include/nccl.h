/* nccl.h: the interface of libnccl.so.2 that programs for NCCL 2.28 are compiled against. Types, values and layouts are
 * those of NCCL 2.28 (native/test/abi_layout.c checks sizes and offsets); the words are ours.
 *
 * Every function returns a code and, unless it is ncclSuccess, leaves a sentence for ncclGetLastError. Every function
 * has a twin of the same meaning with the prefix `pnccl`, for tools that put themselves between a program and the
 * library.
 *
 * CUDA's headers are used where the compiler finds them (define NCCLRUN_NO_CUDA_HEADERS to keep them out). Without them
 * cudaStream_t is declared here, and a host stream (ncclrun.h) cast to it stands in on the host device. */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>

#ifndef NCCLRUN_NO_CUDA_HEADERS
#ifdef __has_include
#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#define NCCLRUN_HAS_CUDA_HEADERS 1
#endif
#endif
#endif
#ifndef NCCLRUN_HAS_CUDA_HEADERS
typedef struct CUstream_st* cudaStream_t;
#endif

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
/* Up to 2.8 a version was written X YY ZZ in thousands, since then in ten-thousands. */
#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* A communicator: one rank's membership in a group of ranks. */
typedef struct ncclComm* ncclComm_t;
#define NCCL_COMM_NULL NULL

/* Names a communicator to be. One process makes it (ncclGetUniqueId), all ranks pass the same bytes to
 * ncclCommInitRank. */
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,     /* the operating system refused something */
  ncclInternalError = 3,   /* a fault in this library */
  ncclInvalidArgument = 4, /* an argument has a value it cannot have */
  ncclInvalidUsage = 5,    /* the call is not allowed now or here */
  ncclRemoteError = 6,     /* another rank died, aborted or lost its connection */
  ncclInProgress = 7,      /* not an error: under way, see ncclCommGetAsyncError */
  ncclTimeout = 8,
  ncclNumResults = 9
} ncclResult_t;

/* "Leave it at the default", for whole numbers, pointers and fractions. */
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f
#define NCCL_SPLIT_NOCOLOR -1

#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01

#define NCCL_REVOKE_DEFAULT 0x00

/* How a communicator shall behave. Begin with NCCL_CONFIG_INITIALIZER, then set fields. A program compiled against an
 * older header passes a shorter structure; `size` says how much of it there is. */
typedef struct ncclConfig_v22800 {
  size_t size;          /* bytes of the caller's structure */
  unsigned int magic;   /* NCCL_CONFIG_INITIALIZER's; anything else is refused */
  unsigned int version; /* NCCL_VERSION_CODE of the caller */
  int blocking;         /* 1: calls return when done; 0: they may return ncclInProgress */
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                          \
  {                                                      \
    sizeof(ncclConfig_t),      /* size */                \
        0xcafebeef,            /* magic */               \
        NCCL_VERSION_CODE,     /* version */             \
        NCCL_CONFIG_UNDEF_INT, /* blocking */            \
        NCCL_CONFIG_UNDEF_INT, /* cgaClusterSize */      \
        NCCL_CONFIG_UNDEF_INT, /* minCTAs */             \
        NCCL_CONFIG_UNDEF_INT, /* maxCTAs */             \
        NCCL_CONFIG_UNDEF_PTR, /* netName */             \
        NCCL_CONFIG_UNDEF_INT, /* splitShare */          \
        NCCL_CONFIG_UNDEF_INT, /* trafficClass */        \
        NCCL_CONFIG_UNDEF_PTR, /* commName */            \
        NCCL_CONFIG_UNDEF_INT, /* collnetEnable */       \
        NCCL_CONFIG_UNDEF_INT, /* CTAPolicy */           \
        NCCL_CONFIG_UNDEF_INT, /* shrinkShare */         \
        NCCL_CONFIG_UNDEF_INT, /* nvlsCTAs */            \
        NCCL_CONFIG_UNDEF_INT, /* nChannelsPerNetPeer */ \
        NCCL_CONFIG_UNDEF_INT, /* nvlinkCentricSched */  \
  }

/* What ncclGroupSimulateEnd fills in. */
typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime; /* microseconds; NCCL_UNDEF_FLOAT: the plan says nothing of it */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER              \
  {                                            \
    sizeof(ncclSimInfo_t), /* size */          \
        0x74685283,        /* magic */         \
        NCCL_VERSION_CODE, /* version */       \
        NCCL_UNDEF_FLOAT,  /* estimatedTime */ \
  }

typedef struct ncclWindow_vidmem* ncclWindow_t;

/* Reductions. Operators made by the user get numbers between ncclNumOps and ncclMaxRedOp. */
typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t)) /* the largest value the enumeration can hold */
} ncclRedOp_t;

/* Element types, with the older names of the same values. */
typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

/* Where the scalar of a user's operator is read: from device memory when the operation runs, or now from the host. */
typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

/* ---- The library ---- */

/* NCCL_VERSION_CODE of the interface the library has. */
ncclResult_t ncclGetVersion(int* version);
ncclResult_t pncclGetVersion(int* version);

/* A few words for a code. Static storage. */
const char* ncclGetErrorString(ncclResult_t result);
const char* pncclGetErrorString(ncclResult_t result);

/* The sentence of the last error: of `comm` if it has failed, else of the calling thread, else of the process; empty if
 * there was none. Valid until the thread's next call of this library. `comm` may be NULL. */
const char* ncclGetLastError(ncclComm_t comm);
const char* pncclGetLastError(ncclComm_t comm);

/* ---- Communicators ---- */

/* Makes a fresh id. Needs no agent and no other rank. */
ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId);
ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId);

/* Joins the communicator named by `commId` as `rank` of `nranks`. Returns when all ranks have joined; in a group, at
 * the group's end. */
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);

/* The same with settings; `config` may be NULL. With blocking = 0 it returns ncclInProgress, and the communicator may
 * be used when ncclCommGetAsyncError says ncclSuccess. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config);
ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config);

/* The same with several ids, of which all ranks pass the same in the same order: one rank each may make some, so that
 * none has to serve all. Here the first names the communicator and the agents serve it; the others are not needed. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                      ncclConfig_t* config);
ncclResult_t pncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                       ncclConfig_t* config);

/* A communicator whose ndev ranks all live in this process, which ncclrun has started; comms[i] is rank i. On the host
 * device `devlist` chooses nothing; if it is not NULL its numbers must differ. Each rank needs a stream of its own;
 * NULL is another stream for each. */
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ndev, const int* devlist);
ncclResult_t pncclCommInitAll(ncclComm_t* comms, int ndev, const int* devlist);

/* Makes communicators of the ranks of `comm`: one of all that call with the same `color` (0 or more), numbered by `key`
 * and, where keys are equal, by their rank in `comm`. Every rank of `comm` calls it, in the same order among its
 * splits; NCCL_SPLIT_NOCOLOR takes part in none and gets *newcomm = NULL. `config` NULL: blocking as `comm` is. `comm`
 * stays in use. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);
ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);

/* Makes a communicator of the ranks of `comm` that are not in excludeRanksList (excludeRanksCount of them, each once),
 * in their order. All of those call it, with the same ranks to leave out; the ranks left out do not, and may be dead.
 * `comm` may be broken. `config` NULL: blocking as `comm` is. NCCL_SHRINK_ABORT: first ends what is under way on
 * `comm`, as ncclCommRevoke does; excludeRanksCount may then be 0 (and the list NULL), which leaves out all ranks that
 * have died, whoever these are. NCCL_SHRINK_DEFAULT: nothing is under way; `comm` stays in use if it was whole. */
ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
                            ncclConfig_t* config, int shrinkFlags);
ncclResult_t pncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
                             ncclConfig_t* config, int shrinkFlags);

/* Ends at once what is under way on `comm` here; the other ranks get ncclRemoteError until they revoke it too. After it
 * `comm` takes no operations and no ncclCommFinalize, only ncclCommSplit and ncclCommShrink (of ranks that have all
 * revoked it or lost it) and ncclCommDestroy or ncclCommAbort. revokeFlags: NCCL_REVOKE_DEFAULT. */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags);
ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags);

/* Waits until everything queued has ended here; no operation may be queued after it. */
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t pncclCommFinalize(ncclComm_t comm);

/* Finalizes if need be, then frees. */
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t pncclCommDestroy(ncclComm_t comm);

/* Ends everything of the communicator at once, at any moment, from any thread, and frees it. Other ranks that wait for
 * this one, now or later, get ncclRemoteError; those that do not go on. */
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t pncclCommAbort(ncclComm_t comm);

/* What became of calls that had returned: ncclSuccess, ncclInProgress, or the error that broke the communicator. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);

/* Number of ranks. */
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count);
ncclResult_t pncclCommCount(const ncclComm_t comm, int* count);

/* The CUDA device of this rank; ncclInvalidUsage on the host device. */
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device);
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device);

/* This rank. */
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank);
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank);

/* ---- Operations: queued on `stream`, done when the stream gets there. Counts are elements. ---- */

/* recvbuff[i] = op over ranks of sendbuff[i], on every rank; count elements. In place: sendbuff == recvbuff. */
ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream);

/* recvbuff[r * sendcount + i] = sendbuff[i] of rank r, on every rank. In place: sendbuff == recvbuff + rank *
 * sendcount. */
ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream);

/* recvbuff[i] of rank r = op over ranks of sendbuff[r * recvcount + i]. In place: recvbuff == sendbuff + rank *
 * recvcount. */
ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/* recvbuff of every rank = sendbuff of rank `root`; the other ranks' sendbuff is not looked at. In place: sendbuff ==
 * recvbuff. */
ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                            ncclComm_t comm, cudaStream_t stream);

/* The same in place. */
ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t pncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream);

/* recvbuff[i] of rank `root` = op over ranks of sendbuff[i]; the other ranks' recvbuff is not looked at. In place:
 * sendbuff == recvbuff. */
ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                         int root, ncclComm_t comm, cudaStream_t stream);

/* recvbuff[r * count + i] of rank p = sendbuff[p * count + i] of rank r. In place: sendbuff == recvbuff. */
ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream);
ncclResult_t pncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream);

/* recvbuff[r * count + i] of rank `root` = sendbuff[i] of rank r; the other ranks' recvbuff is not looked at. In place:
 * sendbuff == recvbuff + root * count. */
ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream);

/* recvbuff[i] of rank r = sendbuff[r * count + i] of rank `root`; the other ranks' sendbuff is not looked at. In place:
 * recvbuff == sendbuff + root * count. */
ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                          ncclComm_t comm, cudaStream_t stream);

/* `count` elements to rank `peer`, which calls ncclRecv with the same count and type. */
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t pncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream);

/* `count` elements from rank `peer`. */
ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t pncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream);

/* ---- Operators of the program ---- */

/* An operator that multiplies this rank's elements by *scalar (one element of `datatype`; each rank has its own) and
 * sums. ncclScalarHostImmediate: *scalar is read now; ncclScalarDevice: each time an operation runs (on the host device
 * it is ordinary memory then too). For operations of `comm` on `datatype`. */
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm);

/* Gives its number back, at any time after the last call that used it; operations under way are not disturbed. */
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/* ---- Memory ---- */

/* Memory for buffers: on the host device whole pages of this process, zeroed. Of 0 bytes: NULL. */
ncclResult_t ncclMemAlloc(void** ptr, size_t size);
ncclResult_t pncclMemAlloc(void** ptr, size_t size);

/* NULL: nothing happens. No operation may be using it. */
ncclResult_t ncclMemFree(void* ptr);
ncclResult_t pncclMemFree(void* ptr);

/* Says that operations of `comm` will use these `size` bytes often; *handle is for ncclCommDeregister. On the host
 * device it makes nothing faster. */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);
ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);
/* NULL: nothing happens. */
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle);
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void* handle);

/* The same by all ranks of `comm`, each with a buffer of its own. winFlags: NCCL_WIN_DEFAULT, or
 * NCCL_WIN_COLL_SYMMETRIC: operations use the same offsets in it on all ranks. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags);
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags);
/* NULL: nothing happens. */
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

/* ---- Groups: what is called between Start and End is begun together at the outermost End. Of the calling thread; they
 * nest. ---- */
ncclResult_t ncclGroupStart(void);
ncclResult_t pncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t pncclGroupEnd(void);

/* Ends the group as ncclGroupEnd does, but its operations are not begun: *simInfo says how long they would take.
 * Communicators that the group joins are joined. An inner End of nested groups says nothing. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo);
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* simInfo);

/* ---- Without effect here: nothing was read from the environment that could be read again. ---- */
void ncclResetDebugInit(void);
void pncclResetDebugInit(void);

#ifdef __cplusplus
}
#endif
#endif
