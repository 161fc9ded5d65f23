/* The last rank is killed while the others wait for it: each of them has to be told, what runs on its
 * stream has to end, ncclCommAbort to return, and a communicator of those that are left to work.
 *
 *   lose_peer RANKS STATE...    of the states below; all: each in turn
 *
 * A line for each survivor and state says how long it waited. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "rank.h"
#include "work.h"

enum {
  grouped = 16,
  groups = 128,
  aMoment = 100000 /* microseconds: by then the others wait */,
  joining = 1000000 /* by then it has joined */
};

typedef struct {
  ncclComm_t comm;
  cudaStream_t stream;
  char *send, *receive;
  size_t bytes; /* of each */
  Graph* graph;
  atomic_int gate;
  ncclResult_t answer; /* of the last call; an error that a call answers is one that was told */
} Scene;

static void reduce(Scene* scene, size_t bytes) {
  if (scene->answer != ncclSuccess) return;
  scene->answer = ncclAllReduce(scene->send, scene->receive, bytes / sizeof(float), ncclFloat32, ncclSum, scene->comm,
                                scene->stream);
}

static void reduceSmall(void* scene) { reduce(scene, 64); }
static void small(Scene* scene) { reduce(scene, 64); }
static void lines(Scene* scene) { reduce(scene, scene->bytes / 16); }
static void large(Scene* scene) { reduce(scene, scene->bytes); }
/* By copy engines alone, where those are. */
static void gather(Scene* scene) {
  if (scene->answer != ncclSuccess) return;
  scene->answer =
      ncclAllGather(scene->send, scene->receive, scene->bytes / maxRanks, ncclInt8, scene->comm, scene->stream);
}
static void replay(Scene* scene) { launch(scene->graph, scene->stream); }

static void many(Scene* scene) {
  for (int i = 0; i < groups && scene->answer == ncclSuccess; i++) {
    MUST(ncclGroupStart());
    for (int k = 0; k < grouped; k++) reduce(scene, 64);
    scene->answer = ncclGroupEnd();
  }
}

/* Nothing has begun when the rank dies; on a private agent, who waits for nobody is not told. */
static void queued(Scene* scene) {
  hold(scene->stream, &scene->gate);
  many(scene);
}

static void finalize(Scene* scene) {
  reduce(scene, 64);
  if (scene->answer == ncclSuccess) scene->answer = ncclCommFinalize(scene->comm);
}

static void barrier(Scene* scene) { scene->answer = ncclrunBarrier(scene->comm, (ncclrunStream_t)scene->stream); }
static void nodeBarrier(Scene* scene) { scene->answer = ncclrunNodeBarrier(scene->comm); }

static void split(Scene* scene) {
  ncclComm_t part;
  scene->answer = ncclCommSplit(scene->comm, 0, 0, &part, NULL);
}

static void sendLarge(Scene* scene) {
  scene->answer = ncclSend(scene->send, scene->bytes, ncclInt8, ranks - 1, scene->comm, scene->stream);
}

static void receiveSmall(Scene* scene) {
  scene->answer = ncclRecv(scene->receive, 64, ncclInt8, ranks - 1, scene->comm, scene->stream);
}

static void group(Scene* scene) {
  const size_t part = scene->bytes / maxRanks;
  MUST(ncclGroupStart());
  for (int peer = 0; peer < ranks; peer++) {
    const size_t from = (size_t)peer * part;
    MUST(ncclSend(scene->send + from, part, ncclInt8, peer, scene->comm, scene->stream));
    MUST(ncclRecv(scene->receive + from, part, ncclInt8, peer, scene->comm, scene->stream));
  }
  scene->answer = ncclGroupEnd();
}

typedef struct {
  const char* name;
  void (*suffer)(Scene* scene); /* what the others call before the rank dies */
  int victimToo;                /* and the rank itself */
  int late;                     /* they call it when it is dead */
} State;
static const State states[] = {
    {"small", small, 0, 0},          {"lines", lines, 0, 0},
    {"large", large, 0, 0},          {"graph", replay, 0, 0},
    {"idle", small, 0, 1},           {"queued", queued, 0, 0},
    {"running", many, 1, 0},         {"moving", large, 1, 0},
    {"gathering", gather, 1, 0},     {"gather", gather, 0, 0},
    {"finalize", finalize, 0, 0},    {"barrier", barrier, 0, 0},
    {"split", split, 0, 0},          {"node-barrier", nodeBarrier, 0, 0},
    {"send", sendLarge, 0, 0},       {"group", group, 0, 0},
    {"receive", receiveSmall, 0, 0}, {"group-late", group, 0, 1},
    {"graph-late", replay, 0, 1},    {"init", NULL, 1, 0},
};
enum { stateCount = sizeof states / sizeof *states };
static const State* state;

static ncclResult_t beginToJoin(ncclComm_t* comm, ncclUniqueId id, int blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  return ncclCommInitRankConfig(comm, ranks, id, rank, &config);
}

/* The last rank joins another communicator and dies before rank 0 joins it. */
static void init(Scene* scene) {
  ncclComm_t other = NULL;
  const ncclUniqueId id = nextId();
  meet();
  if (rank == ranks - 1) {
    REFUSED(beginToJoin(&other, id, 0), ncclInProgress);
    usleep(joining);
    die();
  }
  while (rank == 0 && page->lostAt == 0) usleep(100);
  scene->answer = beginToJoin(&other, id, 1);
  HOLDS(other == NULL);
}

static void beVictim(Scene* scene) {
  if (state->victimToo) state->suffer(scene);
  usleep(state->victimToo ? aMoment / 50 : aMoment);
  die();
}

static void report(double toldAt, double endedAt, double abortedAt) {
  printf("rank %d, %s: told %.0f ms after the kill; the stream ended %.0f ms later; ncclCommAbort took %.0f ms\n", rank,
         state->name, (toldAt - page->lostAt) * 1e3, (endedAt - toldAt) * 1e3, (abortedAt - endedAt) * 1e3);
  fflush(stdout);
}

static void goOn(void) {
  ncclComm_t left;
  at("%s: a communicator of those who are left", state->name);
  MUST(ncclCommInitRank(&left, ranks - 1, nextId(), rank));
  const cudaStream_t stream = makeStream();
  tryOut(left, stream, 1000, 3);
  MUST(ncclCommDestroy(left));
  endStream(stream);
}

static void survive(Scene* scene) {
  at("%s: with the rank that dies", state->name);
  while (state->late && page->lostAt == 0) usleep(100);
  if (state->suffer == NULL) {
    init(scene);
  } else {
    state->suffer(scene);
    if (state->victimToo) reduce(scene, 64); /* all that both call may have ended before the kill */
    while (page->lostAt == 0) usleep(100);
    atomic_store(&scene->gate, 1);
    at("%s: waiting to be told", state->name);
    if (scene->answer == ncclSuccess) scene->answer = told(scene->comm);
  }
  const double toldAt = now();
  must("what was told", scene->answer, ncclRemoteError);
  at("%s: waiting for the stream to end", state->name);
  awaitIdle(scene->stream);
  const double endedAt = now();
  at("%s: aborting", state->name);
  MUST(ncclCommAbort(scene->comm));
  report(toldAt, endedAt, now());
}

static void body(void) {
  at("%s: joining", state->name);
  Scene scene = {.comm = joinAll(), .stream = makeStream(), .bytes = (size_t)(onGpus() ? 256 : 8) << 20};
  scene.send = makeMemory(scene.bytes);
  scene.receive = makeMemory(scene.bytes);
  tryOut(scene.comm, scene.stream, 1000, 1);
  scene.graph = capture(scene.stream, reduceSmall, &scene);
  MUST(scene.answer);
  meet();
  if (rank == ranks - 1 && state->suffer != NULL) beVictim(&scene);
  if (rank == ranks - 1) init(&scene);
  survive(&scene);
  endGraph(scene.graph);
  endStream(scene.stream);
  freeMemory(scene.send);
  freeMemory(scene.receive);
  goOn();
}

int main(int argc, char** argv) {
  const int count = argc > 2 ? atoi(argv[1]) : 0;
  int bad = count < 2, known = 0;
  for (int i = 0; i < stateCount && !bad; i++) {
    state = &states[i];
    int wanted = 0;
    for (int k = 2; k < argc; k++) wanted = wanted || strcmp(argv[k], state->name) == 0 || strcmp(argv[k], "all") == 0;
    if (!wanted) continue;
    known = 1;
    bad = startProcesses(count, 20, body);
  }
  if (count >= 2 && known) {
    if (!bad) printf("lose_peer: %d ranks: each was told, and went on\n", count);
    return bad;
  }
  fprintf(stderr, "usage: lose_peer RANKS STATE...   (2 ranks at least)   states: all");
  for (int i = 0; i < stateCount; i++) fprintf(stderr, ", %s", states[i].name);
  fprintf(stderr, "\n");
  return 2;
}
