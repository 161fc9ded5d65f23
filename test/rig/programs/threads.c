/* Threads: several with a communicator each, at the same time; then two that take turns on one communicator. Prints
 * "ok". (A thread for each rank: init-all.c) */
#include <pthread.h>

#include "must.h"

enum { threads = 4, rounds = 2000, turns = 500 };

static Job job;

static void* useOwn(void* argument) {
  ncclComm_t comm = argument;
  ncclrunStream_t stream;
  MUST(ncclrunStreamCreate(&stream));
  int values[16], sums[16];
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < 16; i++) values[i] = job.rank + round + i;
    MUST(ncclAllReduce(values, sums, 16, ncclInt32, ncclSum, comm, (cudaStream_t)stream));
    MUST(ncclrunStreamSynchronize(stream));
    for (int i = 0; i < 16; i++) CHECK(sums[i] == job.size * (job.size - 1) / 2 + job.size * (round + i));
  }
  MUST(ncclrunStreamDestroy(stream));
  MUST(ncclCommDestroy(comm));
  return NULL;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void* takeTurns(void* argument) {
  const int mine = *(const int*)argument;
  for (int i = 0; i < turns; i++) {
    pthread_mutex_lock(&mutex);
    while (turn % 2 != mine) pthread_cond_wait(&changed, &mutex);
    int value = turn, result = -1;
    MUST(ncclBroadcast(&value, &result, 1, ncclInt32, turn % job.size, job.comm, NULL));
    MUST(ncclrunStreamSynchronize(NULL));
    CHECK(result == turn);
    turn++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(void) {
  job = joinJob();
  pthread_t running[threads];
  for (int i = 0; i < threads; i++) {
    ncclComm_t comm;
    MUST(ncclCommSplit(job.comm, 0, job.rank, &comm, NULL));
    CHECK(pthread_create(&running[i], NULL, useOwn, comm) == 0);
  }
  for (int i = 0; i < threads; i++) CHECK(pthread_join(running[i], NULL) == 0);
  const int numbers[] = {0, 1};
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&running[i], NULL, takeTurns, (void*)&numbers[i]) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(running[i], NULL) == 0);
  MUST(ncclCommDestroy(job.comm));
  puts("ok");
  return 0;
}
