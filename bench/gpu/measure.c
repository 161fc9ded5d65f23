#include "measure.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "wrong.h"

enum { MAX_ROUNDS = 101 };

cudaStream_t stream;
float *plain_send, *plain_receive;
size_t window_bytes;
int rounds = 9;
double round_milliseconds = 8, case_seconds = 30;
static cudaEvent_t began, ended;
static int stuck;

void measure_begin(size_t bytes) {
  window_bytes = bytes;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA(cudaEventCreate(&began));
  CUDA(cudaEventCreate(&ended));
  CUDA(cudaMalloc((void**)&plain_send, bytes));
  CUDA(cudaMalloc((void**)&plain_receive, bytes));
}

int stream_wait(const Library* library) {
  int64_t give_up = 0;
  for (;;) {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state == cudaSuccess) return atomic_load(&shared->failed[library->number]) ? -1 : 0;
    if (state != cudaErrorNotReady) die("%s: %s: %s", library->name, shared->what, cudaGetErrorString(state));
    if (atomic_load(&shared->failed[library->number])) {
      if (give_up == 0) give_up = milliseconds() + 3000;
      if (milliseconds() > give_up) {
        stuck = 1;
        return -1;
      }
    }
    sched_yield();
  }
}

int stream_stuck(void) { return stuck; }

int stream_renew(void) {
  const int64_t give_up = milliseconds() + 10000;
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
    if (milliseconds() > give_up) return -1;
    sched_yield();
  }
  CUDA(cudaStreamQuery(stream));
  stuck = 0;
  return 0;
}

static int fails(Library* library, Case one, cudaStream_t on) {
  const ncclResult_t result = enqueue(library, one, on);
  return result == ncclSuccess ? 0 : library_failed(library, kind_names[one.kind], result);
}

/* A graph of OPERATIONS_PER_GRAPH operations; NULL after a failure. */
static cudaGraphExec_t capture(Library* library, Case one, int* blocks) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t ready = NULL;
  int bad = 0;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < OPERATIONS_PER_GRAPH && !bad; i++) bad = fails(library, one, stream) != 0;
  const cudaError_t end = cudaStreamEndCapture(stream, &graph);
  if (!bad && end == cudaSuccess) {
    const cudaError_t made = cudaGraphInstantiate(&ready, graph, 0);
    if (made != cudaSuccess) ready = NULL;
    *blocks = blocks_of(graph);
  }
  if (!bad && !ready) {
    library_failed(library, "cudaGraphInstantiate", ncclUnhandledCudaError);
    cudaGetLastError();
  }
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError(); /* a capture that was broken off leaves an error */
  return ready;
}

/* µs per operation on this rank; below 0 after a failure. */
static double once(Library* library, Case one, cudaGraphExec_t graph, int times) {
  float passed = 0;
  barrier();
  CUDA(cudaEventRecord(began, stream));
  for (int i = 0; i < times; i++) {
    if (graph) {
      CUDA(cudaGraphLaunch(graph, stream));
    } else if (fails(library, one, stream) != 0) {
      break;
    }
  }
  CUDA(cudaEventRecord(ended, stream));
  if (stream_wait(library) != 0) return -1;
  CUDA(cudaEventElapsedTime(&passed, began, ended));
  return passed * 1e3 / ((double)times * (graph ? OPERATIONS_PER_GRAPH : 1));
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

typedef struct {
  cudaGraphExec_t graph;
  int times; /* launches per round */
  double all[MAX_ROUNDS], first[MAX_ROUNDS];
} Series;

/* Whether any rank is bad. All ranks come here together, so that all leave a case at the same step. */
static int any(int bad) { return largest(bad) != 0; }

static int run_once(Library* library, Case one) {
  return any(fails(library, one, stream) != 0 || stream_wait(library) != 0);
}

/* Checks the result, makes the graph and finds how many launches fill a round. */
static int prepare(Library* library, Case one, Series* series, Figure* figure) {
  const int graphs = one.mode == GRAPH || one.mode == GRAPH_WINDOW;
  const int per_launch = graphs ? OPERATIONS_PER_GRAPH : 1;
  series->graph = NULL;
  clear(library, one);
  barrier();
  if (run_once(library, one)) return -1;
  if (graphs) {
    /* What is done at a first operation only is behind us; what is checked is the graph's result. */
    clear(library, one);
    series->graph = capture(library, one, &figure->blocks);
    if (any(series->graph == NULL)) return -1;
    CUDA(cudaGraphLaunch(series->graph, stream));
    if (any(stream_wait(library) != 0)) return -1;
  }
  figure->wrong = (unsigned long long)total((double)wrong_elements(library, one));
  const double mine = once(library, one, series->graph, graphs ? 1 : 5);
  if (any(mine < 0)) return -1;
  const double wanted = round_milliseconds * 1e3 / (largest(mine) * per_launch);
  const int max = graphs ? 200 : 2000, min = graphs ? 1 : 3;
  series->times = (int)from_first(wanted < min ? min : wanted > max ? max : wanted);
  for (int i = 0; i < 2; i++) { /* caches and clocks get warm */
    if (any(once(library, one, series->graph, series->times) < 0)) return -1;
  }
  return 0;
}

static void sum_up(Figure* figure, Series* series, int count) {
  qsort(series->all, (size_t)count, sizeof(double), by_size);
  qsort(series->first, (size_t)count, sizeof(double), by_size);
  figure->measured = 1;
  figure->median = series->all[count / 2];
  figure->fastest = series->all[0];
  figure->slowest = series->all[count - 1];
  figure->first_rank = series->first[count / 2];
}

/* Mean ratio of the pairs, and the factor of its interval: the logarithms' standard error times Student's 97.5 % point,
 * by Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5). */
static void compare(Figure* figure, const Series* mine, const Series* other, int count) {
  double sum = 0, squares = 0;
  for (int i = 0; i < count; i++) {
    const double ratio = log(mine->all[i] / other->all[i]);
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / count, freedom = count - 1, z = 1.959964;
  const double variance = freedom > 0 ? (squares - count * mean * mean) / freedom : 0;
  const double student =
      z + (z * z * z + z) / (4 * freedom) + (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * freedom * freedom);
  figure->ratio = exp(mean);
  figure->factor = freedom > 0 ? exp(student * sqrt(fmax(variance, 0) / count)) : INFINITY;
}

static int may(const Library* library, Case one, Figure* figure) {
  const char* why = NULL;
  if (!library->usable)
    why = "not usable";
  else if (one.mode >= EAGER_WINDOW && library->why_no_window[0])
    why = "no windows";
  else if (atomic_load(&shared->left_out[library->number][one.kind][one.mode]))
    why = "hung before";
  if (why) snprintf(figure->why_not, sizeof figure->why_not, "%s", why);
  return why == NULL;
}

void measure(Case one, Figure figures[LIBRARIES]) {
  static Series series[LIBRARIES];
  int good[LIBRARIES];
  memset(figures, 0, LIBRARIES * sizeof *figures);
  figures[OURS].blocks = figures[THEIRS].blocks = -1;
  for (int n = 0; n < LIBRARIES; n++) {
    Library* library = &libraries[n];
    if (!(good[n] = may(library, one, &figures[n]))) continue;
    under_way(case_seconds, "%s %s %zu bytes, %s", library->name, kind_names[one.kind], one.bytes,
              mode_names[one.mode]);
    atomic_store(&shared->library, n);
    figures[n].tried = 1;
    prepare(library, one, &series[n], &figures[n]);
    good[n] = library_settle(library, shared->what) == 0;
    if (!good[n]) snprintf(figures[n].why_not, sizeof figures[n].why_not, "failed");
  }
  for (int round = 0; round < rounds; round++) {
    for (int turn = 0; turn < LIBRARIES; turn++) {
      const int n = (turn + round) % LIBRARIES; /* A B B A: neither is always second */
      if (!good[n]) continue;
      under_way(case_seconds, "%s %s %zu bytes, %s", libraries[n].name, kind_names[one.kind], one.bytes,
                mode_names[one.mode]);
      atomic_store(&shared->library, n);
      const double mine = once(&libraries[n], one, series[n].graph, series[n].times);
      series[n].all[round] = largest(mine);
      series[n].first[round] = from_first(mine);
      good[n] = library_settle(&libraries[n], shared->what) == 0;
      if (!good[n]) snprintf(figures[n].why_not, sizeof figures[n].why_not, "failed");
    }
  }
  atomic_store(&shared->library, -1);
  if (good[OURS] && good[THEIRS]) compare(&figures[OURS], &series[OURS], &series[THEIRS], rounds);
  for (int n = 0; n < LIBRARIES; n++) {
    if (good[n]) sum_up(&figures[n], &series[n], rounds);
    if (series[n].graph) CUDA(cudaGraphExecDestroy(series[n].graph));
    series[n].graph = NULL;
  }
}
