/* One of the two libraries: opened by its path, so that both live in one process with symbols of their own, and the
 * communicator and windows that this rank has there. */
#ifndef LIBRARY_H_
#define LIBRARY_H_

#include "nccl.h"
#include "shared.h"

typedef struct {
  int number;       /* OURS or THEIRS */
  const char* name; /* for rows */
  const char* path; /* NULL: not asked for */
  int usable;       /* opened, with a communicator */
  int versionCode;
  ncclComm_t comm;
  void* window_memory[2]; /* send and receive buffer of the library's own; NULL: not to be had */
  ncclWindow_t window[2];
  char why_no_window[512];

  __typeof__(&ncclGetVersion) GetVersion;
  __typeof__(&ncclGetUniqueId) GetUniqueId;
  __typeof__(&ncclCommInitRank) CommInitRank;
  __typeof__(&ncclCommDestroy) CommDestroy;
  __typeof__(&ncclCommAbort) CommAbort;
  __typeof__(&ncclCommGetAsyncError) CommGetAsyncError;
  __typeof__(&ncclGetErrorString) GetErrorString;
  __typeof__(&ncclGetLastError) GetLastError;
  __typeof__(&ncclAllReduce) AllReduce;
  __typeof__(&ncclAllGather) AllGather;
  __typeof__(&ncclReduceScatter) ReduceScatter;
  __typeof__(&ncclBroadcast) Broadcast;
  __typeof__(&ncclReduce) Reduce;
  __typeof__(&ncclSend) Send;
  __typeof__(&ncclRecv) Recv;
  __typeof__(&ncclGroupStart) GroupStart;
  __typeof__(&ncclGroupEnd) GroupEnd;
  /* Where the library has them, else NULL. */
  __typeof__(&ncclAlltoAll) AlltoAll;
  __typeof__(&ncclGather) Gather;
  __typeof__(&ncclScatter) Scatter;
  __typeof__(&ncclMemAlloc) MemAlloc;
  ncclResult_t (*WindowRegister)(ncclComm_t comm, void* memory, size_t bytes, ncclWindow_t* window, int flags);
  ncclResult_t (*Barrier)(ncclComm_t comm, void* stream); /* ncclrunBarrier */
} Library;

extern Library libraries[LIBRARIES];

/* dlopen and dlsym: 0, or -1 after a line on stderr. */
int library_open(Library* library);
/* A communicator of all ranks: 0, or -1 at every rank, after library_failed. */
int library_join(Library* library);
/* Buffers of `bytes` that are windows of the communicator; where that cannot be, why_no_window says so. All ranks. */
void library_windows(Library* library, size_t bytes);
/* Notes a failure of this rank, for all ranks to see. Returns -1. */
int library_failed(Library* library, const char* what, ncclResult_t result);
/* All ranks, behind a case: 0, or -1 if one has failed; then rank 0 has printed the sentence and there is another
 * communicator, or the library is not usable any more. */
int library_settle(Library* library, const char* what);

#endif
