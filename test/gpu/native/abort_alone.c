/* A rank that aborts a communicator leaves those alone that do not wait for it: they see no error, go on among
 * themselves, and leave in order. What needs the rank fails, now or later.
 *
 *   abort_alone RANKS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"
#include "rank.h"

enum { count = 1000, aMoment = 50000 /* microseconds */, looks = 30 };

static ncclComm_t comm;
static cudaStream_t stream;
static int* memory;

static ncclResult_t reduce(void) { return ncclAllReduce(memory, memory, count, ncclInt32, ncclSum, comm, stream); }

static void* abortLater(void* own) {
  rank = *(const int*)own;
  useDevice(rank);
  usleep(aMoment);
  MUST(ncclCommAbort(comm));
  return NULL;
}

/* Its operation waits for the others, who do not call; another of its threads aborts. */
static void beAborted(void) {
  pthread_t thread;
  MUST(reduce());
  HOLDS(pthread_create(&thread, NULL, abortLater, &rank) == 0);
  ended(stream);
  HOLDS(pthread_join(thread, NULL) == 0);
}

static void exchange(int peer) {
  MUST(ncclGroupStart());
  MUST(ncclSend(memory, count, ncclInt32, peer, comm, stream));
  MUST(ncclRecv(memory + count, count, ncclInt32, peer, comm, stream));
  MUST(ncclGroupEnd());
  MUST(ended(stream));
}

static void seeNothing(void) {
  ncclResult_t error = ncclInternalError;
  MUST(ncclCommGetAsyncError(comm, &error));
  MUST(error);
}

/* A call that needs the rank that aborted fails at once, or its communicator tells of it. */
static void expectLost(ncclResult_t result) {
  must("what was told", result != ncclSuccess ? result : told(comm), ncclRemoteError);
  ended(stream); /* on the host device: what the operation ended with, said once */
}

/* `leaves`: in order, without ever needing the rank. */
static void goOn(int leaves) {
  for (int look = 0; look < looks; look++) {
    seeNothing();
    usleep(aMoment);
  }
  const int partner = rank % 2 == 1 ? rank + 1 : rank - 1; /* 1 with 2, 3 with 4 */
  if (partner < ranks) exchange(partner);
  seeNothing();
  if (leaves) {
    MUST(ncclCommFinalize(comm));
    MUST(settled(comm));
    MUST(ncclCommDestroy(comm));
    return;
  }
  expectLost(reduce());
  MUST(ncclCommAbort(comm));
}

static void situation(const char* name, int leaves) {
  at("%s: joining", name);
  comm = joinAll();
  MUST(reduce());
  MUST(ended(stream));
  meet();
  at("%s", name);
  if (rank == 0) beAborted();
  meet();
  if (rank != 0) goOn(leaves);
  meet();
}

/* Who waits for the rank already is told, alone. */
static void whileOneWaits(void) {
  at("one waits: joining");
  comm = joinAll();
  MUST(reduce());
  MUST(ended(stream));
  meet();
  at("one waits");
  if (rank == 1) MUST(ncclRecv(memory, count, ncclInt32, 0, comm, stream));
  meet();
  if (rank == 0) MUST(ncclCommAbort(comm));
  if (rank == 1) {
    must("what was told", told(comm), ncclRemoteError);
    ended(stream);
  }
  meet();
  if (rank > 1) seeNothing();
  meet();
  if (rank == 1) MUST(ncclCommAbort(comm));
  if (rank > 1) MUST(ncclCommDestroy(comm));
  meet();
}

static void body(void) {
  stream = makeStream();
  memory = makeMemory(2 * count * sizeof *memory);
  situation("all leave in order", 1);
  situation("all need it later", 0);
  whileOneWaits();
  freeMemory(memory);
  endStream(stream);
}

int main(int argc, char** argv) {
  const int started = argc > 1 ? atoi(argv[1]) : 0;
  if (started < 2) {
    fprintf(stderr, "usage: abort_alone RANKS   (2 ranks at least)\n");
    return 2;
  }
  const int status = startProcesses(started, 60, body);
  if (status == 0) printf("abort_alone: %d ranks: those who did not wait went on\n", started);
  return status;
}
