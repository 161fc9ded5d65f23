/* The main thread ends by pthread_exit. The argument says when: "after" the last ncclCommDestroy, or "before" another
 * thread has used and destroyed everything. */
#include <pthread.h>
#include <string.h>

#include "must.h"

static Job job;

static void* use(void* argument) {
  int value = 1, sum = 0;
  (void)argument;
  MUST(ncclAllReduce(&value, &sum, 1, ncclInt32, ncclSum, job.comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  CHECK(sum == job.size);
  MUST(ncclCommDestroy(job.comm));
  puts("ok");
  fflush(stdout);
  return NULL;
}

static void* useLate(void* main) {
  CHECK(pthread_join(*(pthread_t*)main, NULL) == 0);
  return use(NULL);
}

int main(int argc, char** argv) {
  static pthread_t self, other;
  CHECK(argc == 2);
  alarm(30);
  job = joinJob();
  self = pthread_self();
  if (strcmp(argv[1], "before") == 0) {
    CHECK(pthread_create(&other, NULL, useLate, &self) == 0);
  } else {
    use(NULL);
  }
  pthread_exit(NULL);
}
