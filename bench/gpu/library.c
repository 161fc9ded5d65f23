#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "measure.h"

Library libraries[LIBRARIES] = {{.number = OURS, .name = "ours"}, {.number = THEIRS, .name = "theirs"}};

static void* symbol(void* handle, const char* name) { return dlsym(handle, name); }

int library_open(Library* library) {
  void* handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    fprintf(stderr, "collectives: rank %d: %s library: %s\n", rank, library->name, dlerror());
    return -1;
  }
  const char* missing = NULL;
#define NEEDED(NAME) \
  if (!(library->NAME = (__typeof__(library->NAME))symbol(handle, "nccl" #NAME))) missing = "nccl" #NAME
  NEEDED(GetVersion);
  NEEDED(GetUniqueId);
  NEEDED(CommInitRank);
  NEEDED(CommDestroy);
  NEEDED(CommAbort);
  NEEDED(CommGetAsyncError);
  NEEDED(GetErrorString);
  NEEDED(GetLastError);
  NEEDED(AllReduce);
  NEEDED(AllGather);
  NEEDED(ReduceScatter);
  NEEDED(Broadcast);
  NEEDED(Reduce);
  NEEDED(Send);
  NEEDED(Recv);
  NEEDED(GroupStart);
  NEEDED(GroupEnd);
#undef NEEDED
  if (missing) {
    fprintf(stderr, "collectives: rank %d: %s has no %s\n", rank, library->path, missing);
    return -1;
  }
  library->AlltoAll = (__typeof__(library->AlltoAll))symbol(handle, "ncclAlltoAll");
  library->Gather = (__typeof__(library->Gather))symbol(handle, "ncclGather");
  library->Scatter = (__typeof__(library->Scatter))symbol(handle, "ncclScatter");
  library->MemAlloc = (__typeof__(library->MemAlloc))symbol(handle, "ncclMemAlloc");
  library->WindowRegister = (__typeof__(library->WindowRegister))symbol(handle, "ncclCommWindowRegister");
  library->Barrier = (__typeof__(library->Barrier))symbol(handle, "ncclrunBarrier");
  library->GetVersion(&library->versionCode);
  return 0;
}

int library_failed(Library* library, const char* what, ncclResult_t result) {
  const char* last = library->GetLastError(NULL);
  if (atomic_fetch_add(&shared->failed[library->number], 1) == 0) {
    snprintf(shared->sentence[library->number], sizeof shared->sentence[0], "rank %d: %s: %s: %s", rank, what,
             library->GetErrorString(result), last ? last : "");
  }
  return -1;
}

int library_join(Library* library) {
  ncclUniqueId id;
  memset(&id, 0, sizeof id);
  ncclResult_t result = ncclSuccess;
  under_way(60, "%s: ncclCommInitRank", library->name);
  atomic_store(&shared->library, library->number);
  barrier();
  if (rank == 0 && (result = library->GetUniqueId(&id)) != ncclSuccess)
    library_failed(library, "ncclGetUniqueId", result);
  exchange(&id, &id, sizeof id, 0);
  if (atomic_load(&shared->failed[library->number]) == 0) {
    result = library->CommInitRank(&library->comm, ranks, id, rank);
    if (result != ncclSuccess) library_failed(library, "ncclCommInitRank", result);
  }
  barrier();
  library->usable = atomic_load(&shared->failed[library->number]) == 0;
  if (!library->usable && rank == 0)
    printf("# %s cannot be used: %s\n", library->name, shared->sentence[library->number]);
  barrier();
  atomic_store(&shared->failed[library->number], 0);
  barrier();
  return library->usable ? 0 : -1;
}

void library_windows(Library* library, size_t bytes) {
  ncclResult_t result = ncclSuccess;
  const char* what = NULL;
  under_way(60, "%s: ncclCommWindowRegister", library->name);
  if (!library->WindowRegister || !library->MemAlloc) what = "the library has no ncclCommWindowRegister";
  for (int i = 0; i < 2 && !what; i++) {
    if (!library->window_memory[i] && (result = library->MemAlloc(&library->window_memory[i], bytes)) != ncclSuccess) {
      what = "ncclMemAlloc";
    }
  }
  /* All ranks register, or none: registering waits for the others. */
  if (largest(what != NULL) == 0) {
    for (int i = 0; i < 2 && !what; i++) {
      result = library->WindowRegister(library->comm, library->window_memory[i], bytes, &library->window[i],
                                       NCCL_WIN_COLL_SYMMETRIC);
      if (result != ncclSuccess) what = "ncclCommWindowRegister";
    }
  }
  library->why_no_window[0] = 0;
  if (largest(what != NULL) == 0) return;
  const char* last = result == ncclSuccess ? "" : library->GetLastError(NULL);
  snprintf(library->why_no_window, sizeof library->why_no_window, "%s: %s", what ? what : "another rank could not",
           last);
  if (rank == 0) printf("# %s: no windows: %s\n", library->name, library->why_no_window);
}

int library_settle(Library* library, const char* what) {
  ncclResult_t asynchronous = ncclSuccess;
  if (library->CommGetAsyncError(library->comm, &asynchronous) == ncclSuccess && asynchronous != ncclSuccess) {
    library_failed(library, "asynchronously", asynchronous);
  }
  const int broken = largest(asynchronous != ncclSuccess || stream_stuck()) != 0;
  if (atomic_load(&shared->failed[library->number]) == 0 && !broken) return 0;
  if (rank == 0) printf("# %s failed: %s\n", what, shared->sentence[library->number]);
  barrier();
  atomic_store(&shared->failed[library->number], 0);
  shared->sentence[library->number][0] = 0;
  barrier();
  if (!broken) return -1;
  library->usable = 0;
  library->CommAbort(library->comm);
  if (stream_renew() != 0) die("the GPU does not end what %s has begun", library->name);
  barrier();
  if (library_join(library) == 0 && library->window[0] != NULL && !library->why_no_window[0])
    library_windows(library, window_bytes);
  return -1;
}
