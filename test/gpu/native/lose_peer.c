/* A rank is killed while the others' kernels wait for it: each of them has to be told within a second, the kernels have
 * to end, and ncclCommAbort has to return.
 *
 *   lose_peer GPUS STATE    STATE: small, lines (LL128), large (Simple), graph, idle. Starts a process per GPU itself.
 *
 * Prints how long each survivor waited. Status 1 if one was told something else, or nothing. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ncclrun.h"

enum { mostRanks = 16, secondsToWait = 10 };

/* Between the processes. */
typedef struct {
  volatile int made;
  ncclUniqueId id;
  volatile int ready[mostRanks];
  volatile double killedAt;
} Shared;
static Shared* shared;
static int ranks;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void must(int rank, const char* what, ncclResult_t result) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, ncclGetLastError(NULL));
  exit(1);
}

static size_t bytesOf(const char* state) {
  if (strcmp(state, "large") == 0) return (size_t)256 << 20;
  return strcmp(state, "lines") == 0 ? (size_t)1 << 20 : 64;
}

static int beRank(int rank, const char* state) {
  must(rank, "ncclrunGpuUse", ncclrunGpuUse(rank));
  if (rank == 0) {
    ncclUniqueId id;
    must(rank, "ncclGetUniqueId", ncclGetUniqueId(&id));
    shared->id = id;
    __sync_synchronize();
    shared->made = 1;
  }
  while (!shared->made) usleep(100);
  ncclComm_t comm;
  cudaStream_t stream;
  void* buffer;
  const size_t count = bytesOf(state) / sizeof(float);
  must(rank, "ncclCommInitRank", ncclCommInitRank(&comm, ranks, shared->id, rank));
  must(rank, "stream", ncclrunGpuStreamCreate(&stream));
  must(rank, "ncclMemAlloc", ncclMemAlloc(&buffer, count * sizeof(float)));
  must(rank, "ncclAllReduce", ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, stream));
  ncclrunGpuGraph_t graph = NULL;
  if (strcmp(state, "graph") == 0) {
    must(rank, "capture", ncclrunGpuCaptureBegin(stream));
    must(rank, "ncclAllReduce", ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, stream));
    must(rank, "capture", ncclrunGpuCaptureEnd(stream, &graph));
  }
  must(rank, "synchronize", ncclrunGpuStreamSynchronize(stream));
  shared->ready[rank] = 1;
  if (rank == ranks - 1) {
    for (;;) pause(); /* until the parent kills it */
  }
  while (strcmp(state, "idle") == 0 && shared->killedAt == 0) usleep(1000);
  if (graph != NULL) {
    must(rank, "graph", ncclrunGpuGraphLaunch(graph, stream));
  } else {
    must(rank, "ncclAllReduce", ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, stream));
  }
  ncclResult_t told = ncclSuccess;
  const double begun = now();
  while (told == ncclSuccess && now() - begun < secondsToWait) ncclCommGetAsyncError(comm, &told);
  const double toldAt = now();
  ncclResult_t running = ncclInProgress;
  while (running == ncclInProgress && now() - toldAt < secondsToWait) running = ncclrunGpuStreamQuery(stream);
  const double endedAt = now();
  const ncclResult_t aborted = ncclCommAbort(comm);
  const double abortedAt = now();
  printf("rank %d, %s: told %.0f ms after the kill: %s; the stream ended %.0f ms later; ncclCommAbort took %.0f ms\n",
         rank, state, (toldAt - shared->killedAt) * 1e3, ncclGetErrorString(told), (endedAt - toldAt) * 1e3,
         (abortedAt - endedAt) * 1e3);
  fflush(stdout);
  return told == ncclRemoteError && running == ncclSuccess && aborted == ncclSuccess && toldAt - shared->killedAt < 1
             ? 0
             : 1;
}

int main(int argc, char** argv) {
  ranks = argc == 3 ? atoi(argv[1]) : 0;
  if (ranks < 2 || ranks > mostRanks) {
    fprintf(stderr, "usage: lose_peer GPUS small|lines|large|graph|idle   (2 GPUs at least)\n");
    return 2;
  }
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t children[mostRanks];
  for (int rank = 0; rank < ranks; rank++) {
    children[rank] = fork();
    if (children[rank] == 0) _exit(beRank(rank, argv[2]));
  }
  for (int rank = 0; rank < ranks; rank++) {
    while (!shared->ready[rank] && waitpid(-1, NULL, WNOHANG) == 0) usleep(1000);
  }
  usleep(100000); /* the others' kernels are waiting by now */
  shared->killedAt = now();
  kill(children[ranks - 1], SIGKILL);
  int failed = 0;
  for (int rank = 0; rank < ranks; rank++) {
    int status = 0;
    waitpid(children[rank], &status, 0);
    if (rank < ranks - 1 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) failed = 1;
  }
  printf("%s\n", failed ? "FAIL" : "PASS");
  return failed;
}
