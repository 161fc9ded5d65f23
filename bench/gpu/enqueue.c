/* --enqueue: how long a call keeps the thread that makes it. Few calls at a time, on a stream with nothing on it: none
 * waits until the driver has room for it. */
#include "enqueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device.h"

enum { CALLS = 100, MAX_ROUNDS = 101 };

static double nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double middle(double* values) {
  qsort(values, (size_t)rounds, sizeof *values, by_size);
  return largest(values[rounds / 2]);
}

/* Of the slowest rank: nanoseconds per launch. */
static double launches(cudaError_t (*launch)(cudaStream_t on)) {
  double times[MAX_ROUNDS];
  for (int round = -1; round < rounds; round++) {
    const double from = nanoseconds();
    for (int i = 0; i < CALLS; i++) CUDA(launch(stream));
    if (round >= 0) times[round] = (nanoseconds() - from) / CALLS;
    CUDA(cudaStreamSynchronize(stream));
  }
  return middle(times);
}

/* The same per call; below 0 after a failure. */
static double calls(Library* library, Case one) {
  double times[MAX_ROUNDS];
  int bad = 0;
  for (int round = -1; round < rounds; round++) {
    barrier();
    const double from = nanoseconds();
    for (int i = 0; i < CALLS && !bad; i++) {
      const ncclResult_t result = enqueue(library, one, stream);
      bad = result != ncclSuccess && library_failed(library, kind_names[one.kind], result) != 0;
    }
    if (round >= 0) times[round] = (nanoseconds() - from) / CALLS;
    bad = stream_wait(library) != 0;
    if (largest(bad) != 0) return -1;
  }
  return middle(times);
}

void enqueue_times(Case one) {
  under_way(case_seconds, "launches of an empty kernel");
  const double plain = launches(nothing_by_driver), large = launches(nothing_with_parameters);
  if (rank == 0)
    printf("an empty kernel by cuLaunchKernel: %.0f ns; with %d bytes of parameters %.0f ns\n", plain, PARAMETER_BYTES,
           large);
  for (int n = 0; n < LIBRARIES; n++) {
    Library* library = &libraries[n];
    if (!library->usable) continue;
    under_way(case_seconds, "%s: calls of %s", library->name, kind_names[one.kind]);
    atomic_store(&shared->library, n);
    const double time = calls(library, one);
    library_settle(library, shared->what);
    if (rank != 0) continue;
    if (time < 0) printf("%s: failed\n", library->name);
    if (time >= 0)
      printf("%s: %s of %zu bytes: %.0f ns a call, %.0f more than an empty kernel\n", library->name,
             kind_names[one.kind], one.bytes, time, time - plain);
  }
}
