/* Operations captured in graphs, which are replayed.
 *
 *   graphs RANKS REPLAYS MOST    REPLAYS: of one graph; MOST: largest operation in bytes */
#include <stdio.h>
#include <stdlib.h>

#include "counter.h"
#include "device.h"
#include "rank.h"
#include "work.h"

enum { maxWorks = 40, several = 3 };

static int replays;
static size_t maxBytes;

/* What a graph does: works, a counter, or works on two streams. */
typedef struct {
  ncclComm_t comm;
  cudaStream_t stream, other;
  Event *forked, *joined;
  const Arena* arena;
  const Work* works;
  int count;
  const Counter* counter;
} Recipe;

static void doWorks(void* argument) {
  const Recipe* recipe = argument;
  for (int i = 0; i < recipe->count; i++) post(recipe->arena, &recipe->works[i], recipe->comm, recipe->stream);
  if (recipe->counter != NULL) increase(recipe->counter, recipe->comm, recipe->stream);
}

static void doOnTwoStreams(void* argument) {
  const Recipe* recipe = argument;
  record(recipe->forked, recipe->stream);
  follow(recipe->other, recipe->forked);
  for (int i = 0; i < recipe->count; i++) {
    post(recipe->arena, &recipe->works[i], recipe->comm, i % 2 ? recipe->other : recipe->stream);
  }
  increase(recipe->counter, recipe->comm, recipe->other);
  record(recipe->joined, recipe->other);
  follow(recipe->stream, recipe->joined);
}

/* All-reduces from 8 bytes up, thus of all protocols, then one of each kind. */
static int placeAll(Arena* arena, Work* works, uint64_t seed) {
  int count = 0;
  clearArena(arena);
  for (size_t bytes = 8; bytes <= maxBytes && count < maxWorks - workKinds; bytes *= 2) {
    works[count] = (Work){.kind = workAllReduce, .count = bytes / 4, .seed = draw(&seed), .rank = rank, .ranks = ranks};
    HOLDS(place(arena, &works[count++]));
  }
  for (int kind = 0; kind < workKinds; kind++) {
    works[count] = drawWork(&seed, maxBytes / 64 / (size_t)ranks + 1, rank, ranks);
    works[count].kind = (WorkKind)kind;
    HOLDS(place(arena, &works[count++]));
  }
  upload(arena);
  return count;
}

static void checkAll(Recipe* recipe, Arena* arena) {
  MUST(ended(recipe->stream));
  download(arena);
  for (int i = 0; i < recipe->count; i++) check(arena, &recipe->works[i]);
}

/* Replayed with fresh numbers, before and behind the same operations without a graph. */
static void mixed(ncclComm_t comm, cudaStream_t stream, cudaStream_t other, int forked) {
  Work works[maxWorks];
  Arena arena = makeArena(maxBytes * 8 + ((size_t)1 << 20));
  Counter counter = makeCounter(1000, 5);
  Recipe recipe = {comm, stream, other, makeEvent(), makeEvent(), &arena, works, 0, &counter};
  recipe.count = placeAll(&arena, works, 1);
  Graph* graph = capture(stream, forked ? doOnTwoStreams : doWorks, &recipe);
  int counted = 0;
  for (int i = 0; i < 4; i++) {
    at("replay %d of all sizes%s", i, forked ? " on two streams" : "");
    /* The works keep their places, and their counts: only the numbers are new. */
    for (int k = 0; i > 0 && k < recipe.count; k++) works[k].seed += (uint32_t)i << 8;
    if (i > 0) {
      clearArena(&arena);
      for (int k = 0; k < recipe.count; k++) HOLDS(place(&arena, &works[k]));
      upload(&arena);
    }
    if (i == 3) doWorks(&recipe);
    if (i != 2) launch(graph, stream);
    if (i == 2) doWorks(&recipe);
    if (i == 1) doWorks(&recipe);
    counted += i == 1 || i == 3 ? 2 : 1;
    checkAll(&recipe, &arena);
    checkCounter(&counter, (uint64_t)counted, stream);
  }
  endGraph(graph);
  endEvent(recipe.forked);
  endEvent(recipe.joined);
  endCounter(&counter);
  endArena(&arena);
}

/* Rank r is r replays ahead of rank 0, then falls behind; at the end all have launched as many. */
static void outOfStep(ncclComm_t comm, cudaStream_t stream) {
  Counter counter = makeCounter(1000, 6);
  Recipe recipe = {.comm = comm, .stream = stream, .counter = &counter};
  Graph* graph = capture(stream, doWorks, &recipe);
  for (int i = 0; i < 2 * ranks; i++) {
    at("round %d out of step", i);
    const int ahead = i < ranks ? rank : ranks - 1 - rank;
    for (int k = 0; k < ahead; k++) launch(graph, stream);
    meet();
    for (int k = ahead; k < ranks; k++) launch(graph, stream);
    if (i % 2 == rank % 2) MUST(ended(stream));
  }
  checkCounter(&counter, 2 * (uint64_t)ranks * (uint64_t)ranks, stream);
  endGraph(graph);
  endCounter(&counter);
}

static void oftenInTurn(ncclComm_t comm, cudaStream_t stream) {
  static const size_t counts[several] = {2, 3000, 50000};
  Counter counters[several];
  Recipe recipes[several];
  Graph* graphs[several];
  uint64_t times[several] = {0, 0, 0}, seed = 7;
  for (int i = 0; i < several; i++) {
    counters[i] = makeCounter(counts[i], 7u + (uint32_t)i);
    recipes[i] = (Recipe){.comm = comm, .stream = stream, .counter = &counters[i]};
    graphs[i] = capture(stream, doWorks, &recipes[i]);
  }
  for (int i = 0; i < replays; i++) {
    at("replay %d of graphs in turn", i);
    const int which = (int)(draw(&seed) % several);
    launch(graphs[which], stream);
    times[which]++;
    if (i % 16 == 15) {
      increase(&counters[i / 16 % several], comm, stream);
      times[i / 16 % several]++;
    }
  }
  at("replay %d times", replays);
  for (int i = 0; i < replays; i++) launch(graphs[0], stream);
  times[0] += (uint64_t)replays;
  for (int i = 0; i < several; i++) checkCounter(&counters[i], times[i], stream);
  for (int i = 0; i < several; i++) {
    endGraph(graphs[i]);
    endCounter(&counters[i]);
  }
}

/* A recipe on two streams, between whose two operations another graph is captured. */
typedef struct {
  Recipe own, inner;
  cudaStream_t innerStream;
  Graph* captured;
} Nested;

static void doAround(void* argument) {
  Nested* nested = argument;
  const Recipe* own = &nested->own;
  record(own->forked, own->stream);
  follow(own->other, own->forked);
  increase(own->counter, own->comm, own->stream);
  if (nested->captured == NULL) nested->captured = capture(nested->innerStream, doWorks, &nested->inner);
  increase(own->counter, own->comm, own->other);
  record(own->joined, own->other);
  follow(own->stream, own->joined);
}

static void whileCapturing(ncclComm_t comm, cudaStream_t stream, cudaStream_t other) {
  at("a graph captured while another is");
  Counter counter = makeCounter(100000, 8), innerCounter = makeCounter(100, 9);
  const cudaStream_t third = makeStream();
  Nested nested = {.own = {comm, stream, other, makeEvent(), makeEvent(), NULL, NULL, 0, &counter},
                   .inner = {.comm = comm, .stream = third, .counter = &innerCounter},
                   .innerStream = third};
  Graph* graph = capture(stream, doAround, &nested);
  if (nested.captured == NULL) nested.captured = capture(third, doWorks, &nested.inner); /* no graphs here */
  enum { times = 50 };
  for (int i = 0; i < times; i++) {
    launch(graph, stream);
    launch(nested.captured, third);
  }
  checkCounter(&counter, 2 * times, stream);
  checkCounter(&innerCounter, times, third);
  endGraph(graph);
  endGraph(nested.captured);
  endEvent(nested.own.forked);
  endEvent(nested.own.joined);
  endStream(third);
  endCounter(&counter);
  endCounter(&innerCounter);
}

/* How a graph and its communicator end: in every order. */
static void ends(cudaStream_t stream) {
  for (int way = 0; way < 4; way++) {
    at("end %d", way);
    ncclComm_t comm = joinAll();
    Counter counter = makeCounter(100, 11);
    Recipe recipe = {.comm = comm, .stream = stream, .counter = &counter};
    Graph* graph = capture(stream, doWorks, &recipe);
    for (int i = 0; i < way; i++) launch(graph, stream);
    if (way == 0) endGraph(graph); /* never launched */
    if (way == 1) MUST(ncclCommFinalize(comm));
    checkCounter(&counter, (uint64_t)way, stream);
    if (way == 2) endGraph(graph);
    if (way == 3) meet(); /* an abort would end what others have under way */
    if (way == 3) MUST(ncclCommAbort(comm));
    if (way != 3) MUST(ncclCommDestroy(comm));
    if (way % 2 == 1) endGraph(graph);
    endCounter(&counter);
    meet();
  }
}

static void nonBlocking(cudaStream_t stream) {
  at("a graph of a non-blocking communicator");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm;
  REFUSED(ncclCommInitRankConfig(&comm, ranks, nextId(), rank, &config), ncclInProgress);
  MUST(settled(comm));
  Counter counter = makeCounter(100, 12);
  Recipe recipe = {.comm = comm, .stream = stream, .counter = &counter};
  Graph* graph = capture(stream, doWorks, &recipe); /* nothing has run on it before */
  for (int i = 0; i < 5; i++) launch(graph, stream);
  checkCounter(&counter, 5, stream);
  endGraph(graph);
  const ncclResult_t finalized = ncclCommFinalize(comm);
  if (finalized != ncclInProgress) MUST(finalized);
  MUST(settled(comm));
  MUST(ncclCommDestroy(comm));
  endCounter(&counter);
}

static void body(void) {
  at("making the communicator");
  const cudaStream_t stream = makeStream(), other = makeStream();
  ncclComm_t comm = joinAll();
  mixed(comm, stream, other, 0);
  mixed(comm, stream, other, 1);
  outOfStep(comm, stream);
  oftenInTurn(comm, stream);
  whileCapturing(comm, stream, other);
  MUST(ncclCommDestroy(comm));
  ends(stream);
  nonBlocking(stream);
  endStream(stream);
  endStream(other);
}

int main(int argc, char** argv) {
  replays = argc == 4 ? atoi(argv[2]) : 0;
  maxBytes = argc == 4 ? (size_t)atoll(argv[3]) : 0;
  if (replays < 1 || maxBytes < 4096) {
    fprintf(stderr, "usage: graphs RANKS REPLAYS MOST   (4096 bytes at least)\n");
    return 2;
  }
  const int count = atoi(argv[1]);
  const int status = startProcesses(count, 120, body);
  if (status == 0) printf("graphs: %d ranks, %d replays, up to %zu bytes: right\n", count, replays, maxBytes);
  return status;
}
