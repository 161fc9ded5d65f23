/* Ranks that fork while the engine works: a child is told that it cannot use the engine, may exec another program, may
 * exit in every way; its parent is unharmed. A child that is forked before the engine is used may be the rank. The
 * argument: "after" or "before" the engine's first use. Prints "ok". */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>

#include "must.h"

static int sum(ncclComm_t comm, int value) {
  int result = 0;
  MUST(ncclAllReduce(&value, &result, 1, ncclInt32, ncclSum, comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  return result;
}

static void refused(ncclResult_t result) {
  CHECK(result == ncclInvalidUsage && strstr(ncclGetLastError(NULL), "forked") != NULL);
}

static void useAsChild(const Job* job) {
  int value = 1, size;
  ncclComm_t comm;
  ncclUniqueId id;
  ncclrunStream_t stream;
  ncclResult_t state;
  refused(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, job->comm, NULL));
  refused(ncclSend(&value, 1, ncclInt32, 0, job->comm, NULL));
  refused(ncclrunBarrier(job->comm, NULL));
  refused(ncclrunStreamSynchronize(NULL));
  refused(ncclrunStreamCreate(&stream));
  refused(ncclCommCount(job->comm, &size));
  refused(ncclCommGetAsyncError(job->comm, &state));
  refused(ncclGetUniqueId(&id));
  refused(ncclCommInitRank(&comm, job->size, job->id, job->rank));
  refused(ncclCommSplit(job->comm, 0, 0, &comm, NULL));
  refused(ncclCommFinalize(job->comm));
  refused(ncclCommDestroy(job->comm));
  refused(ncclCommAbort(job->comm));
}

/* How a child ends, and the status that its parent sees. */
static void childEnds(int way) {
  if (way == 0) exit(40);
  if (way == 1) _exit(41);
  if (way == 2) execl("/bin/sh", "sh", "-c", "exit 42", (char*)NULL);
  if (way == 3) pthread_exit(NULL); /* the last thread of the child */
  abort();
}
static const int ends[] = {40, 41, 42, 0};

static atomic_int forking = 1;
static void* goOn(void* argument) {
  /* Both ranks stop after the same number of sums. */
  const Job* job = argument;
  for (int more = 1; more > 0;) {
    CHECK(sum(job->comm, 1) == job->size);
    more = sum(job->comm, atomic_load(&forking));
  }
  return NULL;
}

static void after(void) {
  Job job = joinJob();
  pthread_t thread; /* at work while this one forks */
  CHECK(pthread_create(&thread, NULL, goOn, &job) == 0);
  for (int i = 0; i < 40; i++) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(10);
      useAsChild(&job);
      childEnds(i % 4);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == ends[i % 4]);
  }
  atomic_store(&forking, 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(sum(job.comm, 1) == job.size);
  MUST(ncclCommDestroy(job.comm));
}

static void before(void) {
  int version;
  MUST(ncclGetVersion(&version)); /* uses nothing */
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const Job job = joinJob();
    CHECK(sum(job.comm, 1) == job.size);
    MUST(ncclCommDestroy(job.comm));
    exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  alarm(60);
  if (strcmp(argv[1], "before") == 0) {
    before();
  } else {
    after();
  }
  puts("ok");
  return 0;
}
