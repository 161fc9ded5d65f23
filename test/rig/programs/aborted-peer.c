/* Of three ranks the first aborts the communicator. The first argument says what the others do:
 *
 *   waits   rank 1 waits for rank 0 already; rank 2 needs nobody
 *   later   nobody waits; then rank 1 receives from rank 0
 *   sends   nobody waits; then rank 1 sends to rank 0
 *   chain   rank 1 waits for rank 0, rank 2 for rank 1, which stays after it has failed
 *   fails   as waits, but rank 1 ends with status 3, and rank 0 does not end by itself
 *
 * Who is told says what, and after how long; who needs nobody must see no error. The second argument is a directory
 * that all ranks see. */
#include <string.h>

#include "must.h"

enum { count = 1000 };
static int values[count];
static Job job;
static const char* directory;
static int chained;

static void sum(void) {
  MUST(ncclAllReduce(values, values, count, ncclInt32, ncclSum, job.comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
}

static void seeNothing(void) {
  ncclResult_t error = ncclInternalError;
  MUST(ncclCommGetAsyncError(job.comm, &error));
  MUST(error);
}

static void print(ncclResult_t result, double since) {
  printf("%d after %.0f ms: %s\n", result, milliseconds() - since, ncclGetLastError(NULL));
  fflush(stdout);
  say("told", job.rank, directory);
}

static void need(int peer, int sends) {
  const double since = milliseconds();
  ncclResult_t result = sends ? ncclSend(values, count, ncclInt32, peer, job.comm, NULL)
                              : ncclRecv(values, count, ncclInt32, peer, job.comm, NULL);
  say("waits", job.rank, directory);
  if (result == ncclSuccess) result = ncclrunStreamSynchronize(NULL);
  print(result, since);
}

static void awaitOne(const char* what, int rank) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s-%d", directory, what, rank);
  while (access(path, F_OK) != 0) usleep(1000);
}

static void abortIt(int later) {
  if (!later) awaitOne("waits", 1);
  if (chained) awaitOne("waits", 2);
  MUST(ncclCommAbort(job.comm));
  say("aborted", 0, directory);
  awaitOne("told", 1); /* by the communicator, not because this process ends */
  if (chained) awaitOne("told", 2);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  alarm(40);
  job = joinJob();
  directory = argv[2];
  chained = strcmp(argv[1], "chain") == 0;
  const int fails = strcmp(argv[1], "fails") == 0, sends = strcmp(argv[1], "sends") == 0;
  const int later = strcmp(argv[1], "later") == 0 || sends;
  CHECK(job.size == 3);
  sum();
  if (job.rank == 0) {
    abortIt(later);
    while (fails) pause();
    return 0;
  }
  if (later) {
    awaitOne("aborted", 0);
    seeNothing();
  }
  if (job.rank == 1) {
    need(0, sends);
    if (fails) return 3;
    if (chained) awaitOne("told", 2);
    MUST(ncclCommAbort(job.comm));
    return 0;
  }
  if (chained) {
    need(1, 0);
    MUST(ncclCommAbort(job.comm));
    return 0;
  }
  awaitOne("told", 1);
  if (fails) pause();
  seeNothing();
  MUST(ncclCommFinalize(job.comm));
  MUST(ncclCommDestroy(job.comm));
  return 0;
}
