/* Opens the library that the argument names as a plugin would, uses it, closes it, and does that again; the second time
 * with a communicator that is still alive, and one more time after that. Prints "ok". */
#include <dlfcn.h>
#include <sched.h>

#include "must.h"

static void* library;
static void* symbol(const char* name) {
  void* found = dlsym(library, name);
  CHECK(found != NULL);
  return found;
}
#define CALL(function, ...) CHECK(((typeof(&function))symbol(#function))(__VA_ARGS__) == ncclSuccess)

static void use(const char* path, int leave) {
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL);
  ncclUniqueId id, own;
  int size, rank;
  static int one = 1, sum; /* an operation may outlive this call */
  sum = 0;
  ncclComm_t comm, part;
  CALL(ncclrunGetJob, &id, &size, &rank);
  static ncclComm_t world; /* the job's id is used once */
  if (world == NULL) CALL(ncclCommInitRank, &world, size, id, rank);
  CALL(ncclCommSplit, world, 0, rank, &part, NULL);
  CALL(ncclAllReduce, &one, &sum, 1, ncclInt32, ncclSum, part, NULL);
  CALL(ncclrunStreamSynchronize, NULL);
  CHECK(sum == size);
  CALL(ncclGetUniqueId, &own);
  CALL(ncclCommInitRank, &comm, 1, own, 0);
  if (!leave) {
    CALL(ncclCommDestroy, comm);
    CALL(ncclCommDestroy, part);
  }
  if (leave == 2) {
    sum = 0;
    CALL(ncclAllReduce, &one, &sum, 1, ncclInt32, ncclSum, part, NULL); /* under way when the library is closed */
  }
  CHECK(dlclose(library) == 0);
  /* It completes all the same. A rank that ended before the other one called it would be to blame for its failure. */
  while (__atomic_load_n(&sum, __ATOMIC_ACQUIRE) != size) sched_yield();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (int leave = 0; leave < 3; leave++) use(argv[1], leave);
  puts("ok");
  return 0;
}
