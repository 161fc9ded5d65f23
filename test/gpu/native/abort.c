/* ncclCommAbort and ncclCommRevoke at bad moments: while a rank has not joined, while operations wait for a rank that
 * does not call, with many queued, in a replayed graph; by the thread that called and by another. Each time the stream
 * has to end, those who wait to be told, and new communicators of the same ranks to work.
 *
 *   abort RANKS [ROUNDS] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"
#include "rank.h"
#include "work.h"

enum { grouped = 16, groups = 128, aMoment = 50000 /* microseconds: by then the others wait */ };

static int rounds = 1;

typedef struct {
  ncclComm_t comm;
  cudaStream_t stream;
  char* memory;
  size_t bytes;
  Graph* graph;
} Scene;

static void reduce(const Scene* scene, size_t bytes) {
  MUST(ncclAllReduce(scene->memory, scene->memory, bytes / 4, ncclFloat32, ncclSum, scene->comm, scene->stream));
}

static void small(void* scene) { reduce(scene, 64); }
static void large(void* scene) { reduce(scene, ((const Scene*)scene)->bytes); }

static void queued(void* argument) {
  for (int i = 0; i < groups; i++) {
    MUST(ncclGroupStart());
    for (int k = 0; k < grouped; k++) small(argument);
    MUST(ncclGroupEnd());
  }
}

static void replay(void* argument) {
  const Scene* scene = argument;
  for (int i = 0; i < 3; i++) launch(scene->graph, scene->stream);
}

static void messages(void* argument) {
  const Scene* scene = argument;
  const size_t part = scene->bytes / 2 / maxRanks;
  MUST(ncclGroupStart());
  for (int peer = 0; peer < ranks; peer++) {
    char* const own = scene->memory + (size_t)peer * part;
    MUST(ncclSend(own, part, ncclInt8, peer, scene->comm, scene->stream));
    MUST(ncclRecv(own + scene->bytes / 2, part, ncclInt8, peer, scene->comm, scene->stream));
  }
  MUST(ncclGroupEnd());
}

/* What all ranks but the last call. */
static const struct {
  const char* name;
  void (*suffer)(void* scene);
} states[] = {{"a small all-reduce", small}, {"a large all-reduce", large}, {"thousands of operations", queued},
              {"a graph", replay},           {"messages", messages},        {"nothing", NULL}};
enum { stateCount = sizeof states / sizeof *states };

/* Another thread of the rank. */
typedef struct {
  int rank;
  ncclComm_t* comm;
} Aborter;

static void* abortLater(void* argument) {
  const Aborter* aborter = argument;
  rank = aborter->rank;
  useDevice(rank);
  while (*(ncclComm_t volatile*)aborter->comm == NULL) usleep(100);
  usleep(aMoment);
  MUST(ncclCommAbort(*aborter->comm));
  return NULL;
}

static void fresh(cudaStream_t stream) {
  at("a new communicator");
  ncclComm_t comm = joinAll();
  tryOut(comm, stream, 1000, 5);
  MUST(ncclCommDestroy(comm));
}

static void awaitEnd(const Scene* scene) {
  awaitIdle(scene->stream);
  ended(scene->stream); /* on the host device: what the operations ended with */
}

static void expectTold(ncclComm_t comm) { must("what was told", told(comm), ncclRemoteError); }

static void begin(Scene* scene, const char* name, const char* how) {
  *scene = (Scene){.stream = makeStream(), .bytes = (size_t)(onGpus() ? 64 : 2) << 20};
  at("%s, %s: joining", name, how);
  scene->comm = joinAll();
  scene->memory = makeMemory(scene->bytes);
  tryOut(scene->comm, scene->stream, 1000, 4);
  scene->graph = capture(scene->stream, large, scene);
  meet();
  at("%s, %s", name, how);
}

static void end(Scene* scene) {
  endGraph(scene->graph);
  freeMemory(scene->memory);
  fresh(scene->stream);
  endStream(scene->stream);
}

/* Rank 0 aborts, by itself or by another thread; the last one calls nothing and hears nothing until it does; the ranks
 * between wait for both, and are told at the latest when the last one aborts, too. */
static void abortIn(int state, int byAnother) {
  Scene scene;
  const int suffers = rank < ranks - 1 && states[state].suffer != NULL;
  begin(&scene, states[state].name, byAnother ? "aborted by another thread" : "aborted by the caller");
  if (suffers) states[state].suffer(&scene);
  meet();
  if (rank > 0) {
    meet();
    ncclResult_t error = ncclSuccess;
    if (!suffers) MUST(ncclCommGetAsyncError(scene.comm, &error));
    MUST(error);
    if (suffers) expectTold(scene.comm);
    MUST(ncclCommAbort(scene.comm));
  } else if (byAnother) {
    pthread_t thread;
    Aborter aborter = {rank, &scene.comm};
    HOLDS(pthread_create(&thread, NULL, abortLater, &aborter) == 0);
    ended(scene.stream); /* sleeps in the driver meanwhile */
    HOLDS(pthread_join(thread, NULL) == 0);
    meet();
  } else {
    usleep(aMoment);
    MUST(ncclCommAbort(scene.comm));
    meet();
  }
  awaitEnd(&scene);
  end(&scene);
}

/* All ranks revoke; the communicator's parts work. */
static void revokeIn(int state) {
  Scene scene;
  begin(&scene, states[state].name, "revoked");
  ncclComm_t part;
  ncclResult_t error;
  if (rank < ranks - 1 && states[state].suffer != NULL) states[state].suffer(&scene);
  meet();
  usleep(rank == 0 ? aMoment : 0);
  if (rank > 0 && rank < ranks - 1) expectTold(scene.comm);
  MUST(ncclCommRevoke(scene.comm, NCCL_REVOKE_DEFAULT));
  awaitEnd(&scene);
  MUST(ncclCommGetAsyncError(scene.comm, &error));
  MUST(error);
  REFUSED(ncclAllReduce(scene.memory, scene.memory, 1, ncclFloat32, ncclSum, scene.comm, scene.stream),
          ncclInvalidUsage);
  REFUSED(ncclCommFinalize(scene.comm), ncclInvalidUsage);
  at("a part of a revoked communicator");
  MUST(ncclCommSplit(scene.comm, 0, -rank, &part, NULL));
  tryOut(part, scene.stream, 1000, 6);
  MUST(ncclCommDestroy(part));
  MUST(ncclCommDestroy(scene.comm));
  end(&scene);
}

/* The last rank never joins; rank 0's other thread aborts what its first one waits for. */
static void abortWhileJoining(cudaStream_t stream) {
  at("joining a communicator that the last rank does not join");
  fresh(stream); /* so that all have an agent, which then knows of the abort */
  const ncclUniqueId id = nextId();
  ncclComm_t comm = NULL;
  meet();
  if (rank == 0) {
    pthread_t thread;
    Aborter aborter = {rank, &comm};
    HOLDS(pthread_create(&thread, NULL, abortLater, &aborter) == 0);
    HOLDS(ncclCommInitRank(&comm, ranks, id, rank) != ncclSuccess);
    HOLDS(pthread_join(thread, NULL) == 0);
  } else if (rank < ranks - 1) {
    REFUSED(ncclCommInitRank(&comm, ranks, id, rank), ncclRemoteError);
  }
  meet();
  at("joining a communicator that the last rank does not join, without blocking");
  const ncclUniqueId other = nextId();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (rank < ranks - 1) REFUSED(ncclCommInitRankConfig(&comm, ranks, other, rank, &config), ncclInProgress);
  if (rank == 0) usleep(aMoment);
  if (rank > 0 && rank < ranks - 1) expectTold(comm);
  if (rank < ranks - 1) MUST(ncclCommAbort(comm));
  meet();
  fresh(stream);
}

static void body(void) {
  for (int round = 0; round < rounds; round++) {
    const cudaStream_t stream = makeStream();
    abortWhileJoining(stream);
    for (int state = 0; state < stateCount; state++) {
      abortIn(state, 0);
      abortIn(state, 1);
      revokeIn(state);
    }
    endStream(stream);
  }
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 0;
  if (argc > 2) rounds = atoi(argv[2]);
  if (count < 2 || rounds < 1) {
    fprintf(stderr, "usage: abort RANKS [ROUNDS]   (2 ranks at least)\n");
    return 2;
  }
  const int status = startProcesses(count, 120, body);
  if (status == 0) printf("abort: %d ranks: all ended, were told, and went on\n", count);
  return status;
}
