/* Graphs that are launched after their communicator was destroyed: they keep what they use, and give it back when they
 * are destroyed.
 *
 *   kept_graphs RANKS REPLAYS MOST    MOST: largest operation in elements */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"
#include "rank.h"
#include "work.h"

enum { seconds = 20 };

static int replays;
static size_t max;

typedef struct {
  Arena arena;
  Work small, large;
  ncclComm_t comm;
  cudaStream_t stream;
} Captured;

static void postBoth(void* argument) {
  const Captured* all = argument;
  post(&all->arena, &all->small, all->comm, all->stream);
  post(&all->arena, &all->large, all->comm, all->stream);
}

static void body(void) {
  at("joining");
  const ncclComm_t first = joinAll();
  Captured all = {.arena = makeArena((max + 4096) * 4 * (size_t)(ranks + 4)), .stream = makeStream(), .comm = first};
  all.small = (Work){.kind = workAllReduce, .count = 100, .seed = 7, .rank = rank, .ranks = ranks};
  all.large = (Work){.kind = workAllGather, .count = max, .seed = 11, .rank = rank, .ranks = ranks};
  HOLDS(place(&all.arena, &all.small) && place(&all.arena, &all.large));
  upload(&all.arena);
  /* What the process and the driver keep for all communicators and graphs is there from then on: kernels' code, say. */
  at("a graph of another communicator");
  Graph* const another = capture(all.stream, postBoth, &all);
  launch(another, all.stream);
  MUST(ended(all.stream));
  endGraph(another);
  meet();
  const size_t before = freeGpuMemory();
  all.comm = joinAll();
  at("capturing");
  Graph* const graph = capture(all.stream, postBoth, &all);
  MUST(ncclCommDestroy(all.comm));
  meet();
  usleep(300000); /* the communicator would be freed by now */
  for (int i = 0; i < replays; i++) {
    at("replay %d", i);
    upload(&all.arena);
    launch(graph, all.stream);
    MUST(ended(all.stream));
    download(&all.arena);
    check(&all.arena, &all.small);
    check(&all.arena, &all.large);
  }
  meet();
  at("after the graph is gone");
  endGraph(graph);
  const double until = now() + seconds;
  while (freeGpuMemory() < before && now() < until) usleep(1000);
  const size_t after = freeGpuMemory();
  if (after < before) failed("%zu bytes of the GPU's memory are still taken", before - after);
  meet();
  MUST(ncclCommDestroy(first));
  endStream(all.stream);
  endArena(&all.arena);
}

int main(int argc, char** argv) {
  replays = argc == 4 ? atoi(argv[2]) : 0;
  max = argc == 4 ? (size_t)atoll(argv[3]) : 0;
  if (replays < 1 || max < 1) {
    fprintf(stderr, "usage: kept_graphs RANKS REPLAYS MOST\n");
    return 2;
  }
  const int status = startProcesses(atoi(argv[1]), 90, body);
  if (status == 0) printf("kept_graphs: %s ranks, %d replays: right\n", argv[1], replays);
  return status;
}
