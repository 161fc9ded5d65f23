/* Makes and destroys communicators of all ranks over the stand-in for libibverbs, each with a sum and a message, and
 * counts what is left of queue pairs, memory and descriptors. The argument: how many. Prints "nothing is left of N". */
#include <dirent.h>
#include <dlfcn.h>
#include <string.h>

#include "must.h"

static int descriptors(void) {
  int count = 0;
  DIR* const all = opendir("/proc/self/fd");
  CHECK(all != NULL);
  while (readdir(all) != NULL) count++;
  CHECK(closedir(all) == 0);
  return count;
}

static long (*counter(void))(const char*) {
  void* const library = dlopen(getenv("NCCL_IBVERBS_LIB"), RTLD_NOW | RTLD_NOLOAD);
  CHECK(library != NULL); /* else the ranks have used another network */
  long (*count)(const char*) = NULL;
  void* const symbol = dlsym(library, "stand_in_verbs_count");
  CHECK(symbol != NULL);
  memcpy(&count, &symbol, sizeof count);
  CHECK(dlclose(library) == 0);
  return count;
}

/* A communicator of all ranks, from the one of the job, so that its ring crosses between hosts. */
static void useOne(const Job* job, int number) {
  ncclComm_t comm;
  MUST(ncclCommSplit(job->comm, 0, job->rank, &comm, NULL));
  enum { COUNT = 5000 };
  static int from[COUNT], to[COUNT];
  for (int i = 0; i < COUNT; i++) from[i] = number + i + job->rank;
  MUST(ncclAllReduce(from, to, COUNT, ncclInt32, ncclSum, comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  for (int i = 0; i < COUNT; i++) CHECK(to[i] == job->size * (number + i) + job->size * (job->size - 1) / 2);
  const int next = (job->rank + 1) % job->size, previous = (job->rank + job->size - 1) % job->size;
  MUST(ncclGroupStart());
  MUST(ncclSend(from, COUNT, ncclInt32, next, comm, NULL));
  MUST(ncclRecv(to, COUNT, ncclInt32, previous, comm, NULL));
  MUST(ncclGroupEnd());
  MUST(ncclrunStreamSynchronize(NULL));
  CHECK(to[COUNT - 1] == number + COUNT - 1 + previous);
  MUST(ncclCommDestroy(comm));
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const int wanted = atoi(argv[1]);
  static const char* const kinds[] = {"contexts", "domains", "regions", "channels", "completion queues", "queue pairs"};
  enum { KINDS = sizeof kinds / sizeof *kinds };
  Job job = joinJob();
  /* What the job's own communicator keeps, and the first other one leaves for good. */
  for (int i = 0; i < 3; i++) useOne(&job, i);
  long (*const count)(const char*) = counter();
  long before[KINDS];
  for (int i = 0; i < KINDS; i++) before[i] = count(kinds[i]);
  const int open = descriptors();
  for (int i = 0; i < wanted; i++) useOne(&job, i);
  for (int i = 0; i < KINDS; i++) {
    if (count(kinds[i]) == before[i]) continue;
    fprintf(stderr, "%s: %ld, before %ld\n", kinds[i], count(kinds[i]), before[i]);
    return 1;
  }
  /* The proxy closes a connection's descriptors a moment after the other side has. */
  for (const double end = milliseconds() + 10e3; descriptors() > open && milliseconds() < end;) usleep(1000);
  if (descriptors() > open) {
    fprintf(stderr, "descriptors: %d, before %d\n", descriptors(), open);
    return 1;
  }
  MUST(ncclCommDestroy(job.comm));
  for (int i = 0; i < KINDS; i++) {
    if (count(kinds[i]) == 0) continue;
    fprintf(stderr, "%s: %ld are left at the end\n", kinds[i], count(kinds[i]));
    return 1;
  }
  printf("nothing is left of %d\n", wanted);
  return 0;
}
