/* Every rank splits off alone; rank 0 prints how long the slowest rank took, in milliseconds, least of a few rounds. */
#include <stdio.h>
#include <time.h>

#include "ncclrun.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

int main(void) {
  ncclUniqueId id;
  int size, rank;
  ncclComm_t world, part;
  if (ncclrunGetJob(&id, &size, &rank) != ncclSuccess) return 1;
  if (ncclCommInitRank(&world, size, id, rank) != ncclSuccess) return 1;
  double min = 1e9;
  for (int round = 0; round < 5; round++) {
    if (ncclrunBarrier(world, NULL) != ncclSuccess || ncclrunStreamSynchronize(NULL) != ncclSuccess) return 1;
    double took = now();
    if (ncclCommSplit(world, rank, 0, &part, NULL) != ncclSuccess) return 1;
    took = now() - took;
    double max = 0;
    if (ncclAllReduce(&took, &max, 1, ncclFloat64, ncclMax, world, NULL) != ncclSuccess) return 1;
    if (ncclrunStreamSynchronize(NULL) != ncclSuccess || ncclCommDestroy(part) != ncclSuccess) return 1;
    if (max < min) min = max;
  }
  if (rank == 0) printf("%.1f\n", min);
  return ncclCommDestroy(world) == ncclSuccess ? 0 : 1;
}
