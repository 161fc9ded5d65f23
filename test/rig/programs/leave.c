/* The last rank leaves without ncclCommFinalize or ncclCommDestroy, in the way that the first argument names: return,
 * exit, quick_exit, _exit, handler (destroys in an exit handler), busy (exits while its operation waits for peers).
 * With "awaited" as second argument the others wait for it in a barrier and print what they are told, else they end,
 * too. The third argument is a directory that all ranks see. */
#include <string.h>

#include "must.h"

static Job job;
static int values[1 << 20];

static void destroyLate(void) {
  MUST(ncclrunStreamSynchronize(NULL));
  MUST(ncclCommDestroy(job.comm));
}

static int leave(const char* way) {
  if (strcmp(way, "handler") == 0) CHECK(atexit(destroyLate) == 0);
  if (strcmp(way, "busy") == 0) {
    MUST(ncclAllReduce(values, values, 1 << 20, ncclInt32, ncclSum, job.comm, NULL));
    exit(0);
  }
  if (strcmp(way, "exit") == 0) exit(0);
  if (strcmp(way, "quick_exit") == 0) quick_exit(0);
  if (strcmp(way, "_exit") == 0) _exit(0);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  alarm(30);
  job = joinJob();
  MUST(ncclrunBarrier(job.comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  /* Whoever leaves breaks what others have not ended yet. */
  say("past", job.rank, argv[3]);
  awaitAll("past", job.size, argv[3]);
  const int awaited = strcmp(argv[2], "awaited") == 0;
  if (!awaited || job.rank == job.size - 1) return leave(argv[1]);
  ncclResult_t result = ncclrunBarrier(job.comm, NULL);
  if (result == ncclSuccess) result = ncclrunStreamSynchronize(NULL);
  printf("%d: %s\n", result, ncclGetLastError(NULL));
  MUST(ncclCommDestroy(job.comm));
  return 0;
}
