/* Default streams by all of their handles: NULL, 0x1 (cudaStreamLegacy) and 0x2 (cudaStreamPerThread). Where it may be
 * tried, handles that are no stream any more, or never were one: each call says so, and the communicator goes on.
 * (NVIDIA's driver may crash on those.)
 *
 *   handles RANKS default|broken */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "rank.h"
#include "work.h"

enum { count = 1000, rounds = 4, handles = 3 };

static const char* what;

static void tryStream(Arena* arena, ncclComm_t comm, cudaStream_t stream, int round) {
  Work work = {.kind = workAllReduce, .count = count, .seed = (uint32_t)round + 3, .rank = rank, .ranks = ranks};
  clearArena(arena);
  HOLDS(place(arena, &work));
  upload(arena);
  post(arena, &work, comm, stream);
  MUST(ended(stream));
  download(arena);
  check(arena, &work);
}

static void refuse(Arena* arena, ncclComm_t comm, cudaStream_t stream, ncclResult_t code) {
  int* const memory = (int*)arena->device;
  at("%p alone", (void*)stream);
  REFUSED(ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comm, stream), code);
  at("%p in a group", (void*)stream);
  MUST(ncclGroupStart());
  const ncclResult_t in = ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comm, stream);
  if (in != ncclSuccess) SAME(in, code);
  REFUSED(ncclGroupEnd(), code);
  at("%p beside another stream in a group", (void*)stream);
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comm, arena->stream));
  ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comm, stream);
  REFUSED(ncclGroupEnd(), code);
  if (onGpus()) return;
  at("%p by itself", (void*)stream);
  REFUSED(ncclrunStreamSynchronize((ncclrunStream_t)stream), code);
  REFUSED(ncclrunStreamQuery((ncclrunStream_t)stream), code);
  REFUSED(ncclrunStreamDestroy((ncclrunStream_t)stream), code);
}

static void body(void) {
  at("joining");
  const ncclComm_t comm = joinAll();
  Arena arena = makeArena(count * 16);
  for (int round = 0; round < rounds * handles; round++) {
    const uintptr_t handle = (uintptr_t)(round % handles);
    at("default stream %d", (int)handle);
    tryStream(&arena, comm, (cudaStream_t)handle, round);
  }
  if (strcmp(what, "broken") == 0) {
    const ncclResult_t code = onGpus() ? ncclUnhandledCudaError : ncclInvalidArgument;
    static char garbage[4096];
    const cudaStream_t destroyed = makeStream();
    tryStream(&arena, comm, destroyed, 1);
    endStream(destroyed);
    refuse(&arena, comm, destroyed, code);
    refuse(&arena, comm, (cudaStream_t)(void*)garbage, code);
    refuse(&arena, comm, (cudaStream_t)(uintptr_t)0x70, code);
    ncclrunStream_t ofHost = NULL;
    MUST(ncclrunStreamCreate(&ofHost));
    if (onGpus()) refuse(&arena, comm, (cudaStream_t)ofHost, ncclInvalidArgument);
    MUST(ncclrunStreamDestroy(ofHost));
    tryStream(&arena, comm, arena.stream, 2);
  }
  at("leaving");
  MUST(ncclCommDestroy(comm));
  endArena(&arena);
}

int main(int argc, char** argv) {
  what = argc == 3 ? argv[2] : "";
  if (strcmp(what, "default") != 0 && strcmp(what, "broken") != 0) {
    fprintf(stderr, "usage: handles RANKS default|broken\n");
    return 2;
  }
  const int status = startProcesses(atoi(argv[1]), 60, body);
  if (status == 0) printf("handles: %s ranks, %s: right\n", argv[1], what);
  return status;
}
