#include "device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rank.h"

/* What an operation in front of a copy ended with, which the copy is told instead of who waits for the stream. */
static _Thread_local atomic_int* firstError;

struct Event {
  ncclrunGpuEvent_t onGpu;
  atomic_long recorded;
  long asked; /* how often the program has called record() */
};

struct Graph {
  ncclrunGpuGraph_t onGpu;
  void (*body)(void* argument);
  void* argument;
};

/* What a host stream does when it comes to it; the owner's firstError is where a failure goes. */
typedef struct {
  enum { doCopy, doHold, doRecord, doFollow } what;
  atomic_int* firstError;
  void* to;
  const void* from;
  size_t bytes;
  atomic_int* gate;
  Event* event;
  long min;
} Step;

int onGpus(void) {
  const char* device = getenv("NCCLRUN_DEVICE");
  return device == NULL || strcmp(device, "host") != 0;
}

static int gpuCount(void) {
  int count = 0;
  MUST(ncclrunGpuCount(&count));
  if (count == 0) failed("there is no GPU here; NCCLRUN_DEVICE=host runs on the host device");
  if (eachSeesItsGpuAlone) SAME(count, 1);
  return count;
}

int gpuOf(int number) { return number % gpuCount(); }

int ranksOfGpu(void) {
  const int count = onGpus() && !eachSeesItsGpuAlone ? gpuCount() : ranks;
  return (ranks + count - 1) / count;
}

void useDevice(int number) {
  if (onGpus()) MUST(ncclrunGpuUse(gpuOf(number)));
}

void joinAllHere(ncclComm_t* comms, int count) {
  int numbers[maxRanks];
  for (int i = 0; i < count; i++) numbers[i] = onGpus() ? gpuOf(i) : i;
  const int ownsOne = numbers[count - 1] == count - 1;
  MUST(ncclCommInitAll(comms, count, ownsOne ? NULL : numbers));
}

static ncclrunStream_t host(cudaStream_t stream) { return (ncclrunStream_t)stream; }

static void keepError(atomic_int* first, ncclResult_t result) {
  int none = ncclSuccess;
  if (result != ncclSuccess) atomic_compare_exchange_strong(first, &none, (int)result);
}

static void doStep(void* argument, ncclResult_t before) {
  Step* step = argument;
  keepError(step->firstError, before);
  if (step->what == doCopy) memcpy(step->to, step->from, step->bytes);
  if (step->what == doRecord) atomic_fetch_add(&step->event->recorded, 1);
  while (step->what == doHold && atomic_load(step->gate) == 0) usleep(50);
  while (step->what == doFollow && atomic_load(&step->event->recorded) < step->min) usleep(50);
  free(step);
}

static void queue(Step step, cudaStream_t stream) {
  Step* kept = malloc(sizeof *kept);
  if (firstError == NULL) firstError = calloc(1, sizeof *firstError);
  if (kept == NULL || firstError == NULL) failed("no memory");
  *kept = step;
  kept->firstError = firstError;
  MUST(ncclrunStreamCallback(host(stream), doStep, kept));
}

static void holdOnGpu(void* gate) {
  while (atomic_load((atomic_int*)gate) == 0) usleep(50);
}

cudaStream_t makeStream(void) {
  cudaStream_t onGpu = NULL;
  ncclrunStream_t onHost = NULL;
  if (!onGpus()) {
    MUST(ncclrunStreamCreate(&onHost));
    return (cudaStream_t)onHost;
  }
  MUST(ncclrunGpuStreamCreate(&onGpu));
  return onGpu;
}

ncclResult_t ended(cudaStream_t stream) {
  if (onGpus()) return ncclrunGpuStreamSynchronize(stream);
  const ncclResult_t result = ncclrunStreamSynchronize(host(stream));
  const ncclResult_t before = firstError == NULL ? ncclSuccess : (ncclResult_t)atomic_exchange(firstError, ncclSuccess);
  return before != ncclSuccess ? before : result;
}

void endStream(cudaStream_t stream) {
  ended(stream);
  MUST(onGpus() ? ncclrunGpuStreamDestroy(stream) : ncclrunStreamDestroy(host(stream)));
}

void awaitIdle(cudaStream_t stream) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    usleep(50);
    state = onGpus() ? ncclrunGpuStreamQuery(stream) : ncclrunStreamQuery(host(stream));
  }
  MUST(state);
}

void* makeMemory(size_t bytes) {
  void* memory = NULL;
  MUST(ncclMemAlloc(&memory, bytes));
  return memory;
}

void freeMemory(void* memory) { MUST(ncclMemFree(memory)); }

size_t freeGpuMemory(void) {
  if (!onGpus()) return 0;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*ask)(size_t*, size_t*) = NULL;
  if (driver != NULL) *(void**)&ask = dlsym(driver, "cuMemGetInfo_v2");
  size_t unused = 0, total = 0;
  if (ask == NULL || ask(&unused, &total) != 0) failed("cuMemGetInfo says nothing");
  return unused;
}

void copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (onGpus()) {
    MUST(ncclrunGpuCopy(to, from, bytes, stream));
  } else {
    queue((Step){.what = doCopy, .to = to, .from = from, .bytes = bytes}, stream);
  }
}

void hold(cudaStream_t stream, atomic_int* gate) {
  if (onGpus()) {
    MUST(ncclrunGpuStreamCallback(stream, holdOnGpu, gate));
  } else {
    queue((Step){.what = doHold, .gate = gate}, stream);
  }
}

Event* makeEvent(void) {
  Event* event = calloc(1, sizeof *event);
  if (event == NULL) failed("no memory");
  if (onGpus()) MUST(ncclrunGpuEventCreate(&event->onGpu));
  return event;
}

void endEvent(Event* event) {
  if (onGpus()) MUST(ncclrunGpuEventDestroy(event->onGpu));
  free(event);
}

void record(Event* event, cudaStream_t stream) {
  if (onGpus()) {
    MUST(ncclrunGpuEventRecord(event->onGpu, stream));
    return;
  }
  event->asked++;
  queue((Step){.what = doRecord, .event = event}, stream);
}

void follow(cudaStream_t stream, Event* event) {
  if (onGpus()) {
    MUST(ncclrunGpuEventWait(stream, event->onGpu));
  } else {
    queue((Step){.what = doFollow, .event = event, .min = event->asked}, stream);
  }
}

Graph* capture(cudaStream_t stream, void (*body)(void* argument), void* argument) {
  Graph* graph = malloc(sizeof *graph);
  if (graph == NULL) failed("no memory");
  *graph = (Graph){NULL, body, argument};
  if (!onGpus()) return graph;
  MUST(ncclrunGpuCaptureBegin(stream));
  body(argument);
  MUST(ncclrunGpuCaptureEnd(stream, &graph->onGpu));
  return graph;
}

void launch(Graph* graph, cudaStream_t stream) {
  if (onGpus()) {
    MUST(ncclrunGpuGraphLaunch(graph->onGpu, stream));
  } else {
    graph->body(graph->argument);
  }
}

void endGraph(Graph* graph) {
  if (onGpus()) MUST(ncclrunGpuGraphDestroy(graph->onGpu));
  free(graph);
}
