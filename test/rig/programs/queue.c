/* A queue that is full: on a non-blocking communicator the call says ncclInProgress, on a blocking one it waits for
 * room, and an abort ends that wait. Two ranks; rank 1 calls only when rank 0 cannot go on. The argument is a directory
 * that both see. Prints "ok". */
#include <pthread.h>
#include <stdatomic.h>

#include "must.h"

enum { many = 9000 };

static Job job;
static int values[many], sums[many];
static atomic_int called;   /* of the thread's calls, how many have returned */
static atomic_int released; /* rank 1 is about to call */
static int depth;

static ncclResult_t sum(ncclComm_t comm, int i, ncclrunStream_t stream) {
  values[i] = job.rank + i;
  return ncclAllReduce(&values[i], &sums[i], 1, ncclInt32, ncclSum, comm, (cudaStream_t)stream);
}

static void expectSums(int count) {
  for (int i = 0; i < count; i++) CHECK(sums[i] == 2 * i + 1);
}

static ncclComm_t split(int blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  ncclComm_t comm;
  ncclResult_t state = ncclCommSplit(job.comm, 0, job.rank, &comm, &config);
  while (state == ncclInProgress) MUST(ncclCommGetAsyncError(comm, &state));
  MUST(state);
  return comm;
}

static void nonBlocking(const char* directory) {
  const ncclComm_t comm = split(0);
  ncclResult_t state = ncclSuccess;
  if (job.rank == 0) {
    while (state == ncclSuccess && depth < many) state = sum(comm, depth++, NULL);
    CHECK(state == ncclInProgress && depth > 1 && depth < many);
    MUST(ncclCommGetAsyncError(comm, &state));
    CHECK(state == ncclInProgress);
    say("depth", depth, directory);
    say("full", 0, directory);
  } else {
    awaitAll("full", 1, directory);
    char path[512];
    for (depth = 1; snprintf(path, sizeof path, "%s/depth-%d", directory, depth), access(path, F_OK) != 0;) depth++;
    for (int i = 0; i < depth; i++) {
      while (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress) usleep(100);
      sum(comm, i, NULL);
    }
  }
  MUST(ncclrunStreamSynchronize(NULL));
  MUST(ncclCommGetAsyncError(comm, &state));
  MUST(state);
  expectSums(depth);
  MUST(ncclCommDestroy(comm));
}

static void* callMany(void* argument) {
  ncclrunStream_t stream;
  MUST(ncclrunStreamCreate(&stream));
  for (int i = 0; i < many; i++) {
    MUST(sum((ncclComm_t)argument, i, stream));
    CHECK(i < depth || atomic_load(&released)); /* beyond the depth only after others were done */
    atomic_fetch_add(&called, 1);
  }
  MUST(ncclrunStreamSynchronize(stream));
  MUST(ncclrunStreamDestroy(stream));
  return NULL;
}

static void blocking(const char* directory) {
  const ncclComm_t comm = split(1);
  pthread_t thread;
  if (job.rank == 0) {
    CHECK(pthread_create(&thread, NULL, callMany, comm) == 0);
    while (atomic_load(&called) < depth) usleep(100);
    atomic_store(&released, 1);
    say("waits", 0, directory);
  } else {
    awaitAll("waits", 1, directory);
    atomic_store(&released, 1);
    CHECK(pthread_create(&thread, NULL, callMany, comm) == 0);
  }
  CHECK(pthread_join(thread, NULL) == 0);
  expectSums(many);
  MUST(ncclCommDestroy(comm));
}

static void* callForEver(void* argument) {
  ncclrunStream_t stream;
  MUST(ncclrunStreamCreate(&stream));
  ncclResult_t result = ncclSuccess;
  for (int i = 0; result == ncclSuccess; i++) {
    result = sum((ncclComm_t)argument, i % many, stream);
    atomic_fetch_add(&called, 1);
  }
  CHECK(result != ncclInProgress);
  ncclrunStreamSynchronize(stream);
  MUST(ncclrunStreamDestroy(stream));
  return NULL;
}

static void aborted(const char* directory) {
  const ncclComm_t comm = split(1);
  if (job.rank == 0) {
    atomic_store(&called, 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, callForEver, comm) == 0);
    while (atomic_load(&called) < depth) usleep(100);
    MUST(ncclCommAbort(comm));
    CHECK(pthread_join(thread, NULL) == 0);
    say("aborted", 0, directory);
  } else {
    ncclResult_t state = ncclInternalError;
    awaitAll("aborted", 1, directory);
    MUST(ncclCommGetAsyncError(comm, &state));
    MUST(state); /* it waits for nobody */
    MUST(ncclCommDestroy(comm));
  }
}

static void growing(const char* directory) {
  const ncclComm_t comm = split(1);
  MUST(ncclrunCommLetQueueGrow(comm));
  if (job.rank == 1) awaitAll("grown", 1, directory);
  for (int i = 0; i < many; i++) MUST(sum(comm, i, NULL));
  if (job.rank == 0) say("grown", 0, directory);
  MUST(ncclrunStreamSynchronize(NULL));
  expectSums(many);
  MUST(ncclCommDestroy(comm));
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  alarm(60);
  job = joinJob();
  CHECK(job.size == 2);
  nonBlocking(argv[1]);
  blocking(argv[1]);
  aborted(argv[1]);
  growing(argv[1]);
  MUST(ncclCommDestroy(job.comm));
  puts("ok");
  return 0;
}
