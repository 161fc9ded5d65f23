/* What the machine can do at best, measured in the same run: the time of an empty kernel, and what goes to the next
 * GPU by copy engines and by stores of SMs. */
#include <stdlib.h>

#include "device.h"
#include "measure.h"

enum { TRIES = 9, LAUNCHES = 1000, TIMES = 4 };

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double middle(double* values) {
  qsort(values, TRIES, sizeof *values, by_size);
  return values[TRIES / 2];
}

static void measure_launches(double launch[2]) {
  cudaEvent_t began, ended;
  cudaGraph_t recorded;
  cudaGraphExec_t ready;
  double times[TRIES];
  float passed;
  under_way(30, "an empty kernel");
  CUDA(cudaEventCreate(&began));
  CUDA(cudaEventCreate(&ended));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < OPERATIONS_PER_GRAPH; i++) CUDA(nothing(stream));
  CUDA(cudaStreamEndCapture(stream, &recorded));
  CUDA(cudaGraphInstantiate(&ready, recorded, 0));
  for (int graphs = 0; graphs < 2; graphs++) {
    for (int try = -1; try < TRIES; try++) {
      const int launches = graphs ? LAUNCHES / OPERATIONS_PER_GRAPH : LAUNCHES;
      CUDA(cudaEventRecord(began, stream));
      for (int i = 0; i < launches; i++) {
        if (graphs)
          CUDA(cudaGraphLaunch(ready, stream));
        else
          CUDA(nothing(stream));
      }
      CUDA(cudaEventRecord(ended, stream));
      CUDA(cudaStreamSynchronize(stream));
      CUDA(cudaEventElapsedTime(&passed, began, ended));
      if (try >= 0) times[try] = passed * 1e3 / LAUNCHES;
    }
    launch[graphs] = largest(middle(times));
  }
  CUDA(cudaGraphExecDestroy(ready));
  CUDA(cudaGraphDestroy(recorded));
}

/* GB/s of move(to the next GPU), while all do. */
static double measure_moves(cudaError_t (*move)(void* next), void* next) {
  cudaEvent_t began, ended;
  double times[TRIES];
  float passed;
  CUDA(cudaEventCreate(&began));
  CUDA(cudaEventCreate(&ended));
  for (int try = -1; try < TRIES; try++) {
    barrier();
    CUDA(cudaEventRecord(began, stream));
    for (int i = 0; i < TIMES; i++) CUDA(move(next));
    CUDA(cudaEventRecord(ended, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaEventElapsedTime(&passed, began, ended));
    if (try >= 0) times[try] = passed * 1e3 / TIMES;
  }
  const double slowest = largest(middle(times)); /* µs */
  barrier();
  return (double)window_bytes / slowest / 1e3;
}

static cudaError_t copy_to(void* next) {
  return cudaMemcpyAsync(next, plain_send, window_bytes, cudaMemcpyDefault, stream);
}
static cudaError_t store_to(void* next) { return store(next, plain_send, window_bytes, stream); }

void measure_limits(Limits* limits) {
  cudaIpcMemHandle_t mine, theirs;
  void* next = NULL;
  measure_launches(limits->launch);
  limits->copies = limits->stores = 0;
  under_way(60, "copies and stores to the next GPU");
  cudaError_t state = cudaIpcGetMemHandle(&mine, plain_receive);
  exchange(&mine, &theirs, sizeof mine, (rank + 1) % ranks);
  if (largest(state != cudaSuccess) == 0 && ranks > 1) {
    state = cudaIpcOpenMemHandle(&next, theirs, cudaIpcMemLazyEnablePeerAccess);
  }
  cudaGetLastError();
  if (largest(next == NULL) != 0) return;
  limits->copies = measure_moves(copy_to, next);
  limits->stores = measure_moves(store_to, next);
  CUDA(cudaIpcCloseMemHandle(next));
}
