/* What a rank uses of a processor while there is nothing to do: `rest idle` between operations, `rest waiting` inside
 * an all_reduce that rank 0 is late for. Every rank but 0 prints its share of a core, in percent, over a few seconds
 * that begin 0.2 s after it has come to rest. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ncclrun.h"

enum { SETTLING_MS = 200, WINDOW_MS = 5000 };

static void sleep_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static double used_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void* measure(void* share) {
  sleep_ms(SETTLING_MS);
  const double before = used_ms();
  sleep_ms(WINDOW_MS);
  *(double*)share = (used_ms() - before) / WINDOW_MS * 100;
  return NULL;
}

int main(int argc, char** argv) {
  const int waits = argc > 1 && strcmp(argv[1], "waiting") == 0;
  ncclUniqueId id;
  ncclComm_t world;
  pthread_t meter;
  int size, rank;
  double share = 0;
  float one = 1, sum = 0;
  if (ncclrunGetJob(&id, &size, &rank) != ncclSuccess) return 1;
  if (ncclCommInitRank(&world, size, id, rank) != ncclSuccess) return 1;
  if (ncclAllReduce(&one, &sum, 1, ncclFloat32, ncclSum, world, NULL) != ncclSuccess) return 1;
  if (ncclrunStreamSynchronize(NULL) != ncclSuccess) return 1;
  if (pthread_create(&meter, NULL, measure, &share) != 0) return 1;
  if (!waits || rank == 0) sleep_ms(SETTLING_MS + WINDOW_MS + 500);
  if (ncclAllReduce(&one, &sum, 1, ncclFloat32, ncclSum, world, NULL) != ncclSuccess) return 1;
  if (ncclrunStreamSynchronize(NULL) != ncclSuccess) return 1;
  pthread_join(meter, NULL);
  if (rank != 0) printf("%.3f\n", share);
  return ncclCommDestroy(world) == ncclSuccess ? 0 : 1;
}
