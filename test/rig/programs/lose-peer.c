/* The last rank kills itself (SIGKILL) in the state that the first argument names; the others must get ncclRemoteError
 * with its name, destroy what is left, and build a communicator of their own. The second argument is a directory in
 * which they pass the new id on. A survivor prints what it was told, and how long that took. */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

enum { large = 1 << 23 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void die(void) { kill(getpid(), SIGKILL); }

static int is(const char* state, const char* name) { return strcmp(state, name) == 0; }

/* What a survivor does while the victim dies. */
static ncclResult_t suffer(const char* state, ncclComm_t comm, int* buffer) {
  ncclResult_t result = ncclSuccess;
  if (is(state, "nodebarrier")) return ncclrunNodeBarrier(comm);
  if (is(state, "split")) {
    ncclComm_t part;
    return ncclCommSplit(comm, 0, 0, &part, NULL);
  }
  const size_t count = is(state, "ring") ? large : 16;
  const int several = is(state, "queued") ? 50 : 1;
  for (int i = 0; i < several && result == ncclSuccess; i++) {
    result = is(state, "barrier") ? ncclrunBarrier(comm, NULL)
                                  : ncclAllReduce(buffer, buffer, count, ncclInt32, ncclSum, comm, NULL);
  }
  if (result != ncclSuccess) return result;
  return is(state, "finalize") ? ncclCommFinalize(comm) : ncclrunStreamSynchronize(NULL);
}

static void passOn(ncclUniqueId* id, int rank, const char* directory) {
  char path[512], whole[512];
  snprintf(path, sizeof path, "%s/id.part", directory);
  snprintf(whole, sizeof whole, "%s/id", directory);
  if (rank == 0) {
    MUST(ncclGetUniqueId(id));
    FILE* file = fopen(path, "w");
    if (file == NULL || fwrite(id, sizeof *id, 1, file) != 1 || fclose(file) != 0 || rename(path, whole) != 0) exit(2);
    return;
  }
  FILE* file;
  while ((file = fopen(whole, "r")) == NULL) usleep(1000);
  if (fread(id, sizeof *id, 1, file) != 1 || fclose(file) != 0) exit(2);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  alarm(30);
  const char* state = argv[1];
  ncclUniqueId id;
  int size, rank;
  MUST(ncclrunGetJob(&id, &size, &rank));
  const int victim = rank == size - 1;
  int* buffer = calloc(large, sizeof *buffer);
  ncclComm_t comm = NULL;
  say("deaf", rank, argv[2]); /* to the job's end, which the first death begins */
  if (victim && is(state, "init")) {
    awaitAll("deaf", size, argv[2]);
    die();
  }
  double started = now();
  ncclResult_t result = ncclCommInitRank(&comm, size, id, rank);
  if (!is(state, "init")) {
    MUST(result);
    MUST(ncclrunBarrier(comm, NULL));
    MUST(ncclrunStreamSynchronize(NULL));
    if (victim) {
      if (is(state, "ring")) ncclAllReduce(buffer, buffer, large, ncclInt32, ncclSum, comm, NULL);
      usleep(3000);
      die();
    }
    started = now();
    result = suffer(state, comm, buffer);
  }
  const double took = now() - started;
  printf("%d after %.0f ms: %s\n", result, took, ncclGetLastError(NULL));
  fflush(stdout);
  ncclrunStreamSynchronize(NULL); /* what the broken communicator's operations left there, said once */
  if (comm != NULL) MUST(ncclCommDestroy(comm));
  passOn(&id, rank, argv[2]);
  MUST(ncclCommInitRank(&comm, size - 1, id, rank));
  int one = 1, sum = 0;
  MUST(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  MUST(ncclCommDestroy(comm));
  printf("again with %d\n", sum);
  free(buffer);
  return 0;
}
