/* The last rank leaves in order, and others go on as if it had not: the first argument says what they call. "never": it
 * calls nothing before; "before": all have exchanged messages with all. Ranks that nobody needs only wait. Each says
 * what it was told, and after how long. The third argument is a directory that all ranks see. */
#include <string.h>

#include "must.h"

enum { count = 1000, max = 16 };
static int from[max * count], to[max * count];

static int is(const char* call, const char* name) { return strcmp(call, name) == 0; }

static ncclResult_t begin(const char* call, const Job* job) {
  const int last = job->size - 1;
  ncclComm_t comm = job->comm;
  if (is(call, "receive")) return ncclRecv(to, count, ncclInt32, last, comm, NULL);
  if (is(call, "send")) return ncclSend(from, count, ncclInt32, last, comm, NULL);
  if (is(call, "allReduce")) return ncclAllReduce(from, to, count, ncclInt32, ncclSum, comm, NULL);
  if (is(call, "allGather")) return ncclAllGather(from, to, count, ncclInt32, comm, NULL);
  if (is(call, "reduceScatter")) return ncclReduceScatter(from, to, count, ncclInt32, ncclSum, comm, NULL);
  if (is(call, "broadcast")) return ncclBroadcast(from, to, count, ncclInt32, last, comm, NULL);
  if (is(call, "broadcastToIt")) return ncclBroadcast(from, to, count, ncclInt32, 0, comm, NULL);
  if (is(call, "reduce")) return ncclReduce(from, to, count, ncclInt32, ncclSum, 0, comm, NULL);
  if (is(call, "reduceToIt")) return ncclReduce(from, to, count, ncclInt32, ncclSum, last, comm, NULL);
  if (is(call, "allToAll")) return ncclAlltoAll(from, to, count, ncclInt32, comm, NULL);
  if (is(call, "gather")) return ncclGather(from, to, count, ncclInt32, 0, comm, NULL);
  if (is(call, "scatter")) return ncclScatter(from, to, count, ncclInt32, last, comm, NULL);
  if (is(call, "barrier")) return ncclrunBarrier(comm, NULL);
  if (is(call, "nodeBarrier")) return ncclrunNodeBarrier(comm);
  return ncclInternalError;
}

static void talkToAll(const Job* job) {
  MUST(ncclGroupStart());
  for (int peer = 0; peer < job->size; peer++) {
    MUST(ncclSend(from, 1, ncclInt32, peer, job->comm, NULL));
    MUST(ncclRecv(to + peer, 1, ncclInt32, peer, job->comm, NULL));
  }
  MUST(ncclGroupEnd());
  MUST(ncclAllReduce(from, to, count, ncclInt32, ncclSum, job->comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
}

int main(int argc, char** argv) {
  CHECK(argc == 4);
  alarm(40);
  const Job job = joinJob();
  CHECK(job.size <= max);
  if (is(argv[2], "before")) talkToAll(&job);
  say("talked", job.rank, argv[3]);
  if (job.rank == job.size - 1) {
    MUST(ncclCommDestroy(job.comm));
    say("left", job.rank, argv[3]);
    return 0;
  }
  char left[512];
  snprintf(left, sizeof left, "%s/left-%d", argv[3], job.size - 1);
  while (access(left, F_OK) != 0) usleep(1000);
  awaitAll("talked", job.size, argv[3]);                           /* calls that differ end what is still under way */
  const int alone = is(argv[1], "receive") || is(argv[1], "send"); /* the calls of one rank */
  ncclResult_t result = ncclSuccess;
  const double started = milliseconds();
  if (!alone || job.rank == 0) {
    result = begin(argv[1], &job);
    if (result == ncclSuccess) result = ncclrunStreamSynchronize(NULL);
    printf("%d after %.0f ms: %s\n", result, milliseconds() - started, ncclGetLastError(NULL));
    fflush(stdout);
    say("told", 0, argv[3]);
  } else {
    awaitAll("told", 1, argv[3]);
    ncclResult_t error = ncclSuccess;
    MUST(ncclCommGetAsyncError(job.comm, &error));
    printf("untouched %d\n", error);
  }
  MUST(ncclCommDestroy(job.comm));
  return 0;
}
