/* The last rank kills itself (SIGKILL) in the state that the first argument names; the others must get ncclRemoteError
 * with its name, destroy what is left, and build a communicator of their own. The second argument is a directory in
 * which they pass the new id on. A survivor prints what it was told, and how long that took. */
#include <signal.h>
#include <string.h>

#include "must.h"

enum { large = 1 << 23 };

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
  double started = milliseconds();
  ncclResult_t result = ncclCommInitRank(&comm, size, id, rank);
  if (!is(state, "init")) {
    MUST(result);
    MUST(ncclrunBarrier(comm, NULL));
    MUST(ncclrunStreamSynchronize(NULL));
    say("well", rank, argv[2]); /* nobody dies while another one is still in the barrier */
    if (victim) {
      awaitAll("well", size, argv[2]);
      if (is(state, "ring")) ncclAllReduce(buffer, buffer, large, ncclInt32, ncclSum, comm, NULL);
      usleep(3000);
      die();
    }
    started = milliseconds();
    result = suffer(state, comm, buffer);
  }
  const double took = milliseconds() - started;
  printf("%d after %.0f ms: %s\n", result, took, ncclGetLastError(NULL));
  fflush(stdout);
  ncclrunStreamSynchronize(NULL); /* what the broken communicator's operations left there, said once */
  if (comm != NULL) MUST(ncclCommDestroy(comm));
  passOn(&id, "id", rank, argv[2]);
  MUST(ncclCommInitRank(&comm, size - 1, id, rank));
  int one = 1, sum = 0;
  MUST(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  MUST(ncclCommDestroy(comm));
  printf("again with %d\n", sum);
  free(buffer);
  return 0;
}
