/* The last rank kills itself (SIGKILL) while it and the others are in the state that the first argument names: `idle`,
 * `operation`, `shrink` (the others already wait for each other there), `needed` (the others do not leave it out) or
 * `part` (rank 0 of the job is in another communicator). The others shrink the communicator and go on without it, and
 * say "shrunk to" how many. The second argument is a directory in which they say how far they are. SHRINK=gone: they
 * name no rank, but leave out whoever is gone. */
#include <signal.h>
#include <string.h>

#include "must.h"

static int is(const char* state, const char* name) { return strcmp(state, name) == 0; }

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  alarm(30);
  const char* state = argv[1];
  Job job = joinJob();
  if (is(state, "part")) {
    const ncclComm_t world = job.comm;
    MUST(ncclCommSplit(world, job.rank == 0, 0, &job.comm, NULL));
    MUST(ncclCommDestroy(world));
    if (job.rank == 0) return 0;
    MUST(ncclCommCount(job.comm, &job.size));
    MUST(ncclCommUserRank(job.comm, &job.rank));
  }
  say("there", job.rank, argv[2]);
  awaitAll("there", job.size, argv[2]); /* all have the communicator, and are deaf to the job's end */
  int last = job.size - 1, one = 1, sum = 0;
  if (job.rank == last) {
    if (is(state, "shrink")) awaitAll("about", 1, argv[2]);
    kill(getpid(), SIGKILL);
  }
  if (is(state, "operation")) {
    ncclResult_t result = ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, job.comm, NULL);
    if (result == ncclSuccess) result = ncclrunStreamSynchronize(NULL);
    CHECK(result == ncclRemoteError);
  }
  if (is(state, "shrink")) say("about", job.rank, argv[2]);
  ncclComm_t part = NULL;
  if (is(state, "needed")) {
    int other = 0;
    if (job.rank == 0) return 0;
    const ncclResult_t result = ncclCommShrink(job.comm, &other, 1, &part, NULL, NCCL_SHRINK_ABORT);
    printf("%d: %s\n", result, ncclGetLastError(NULL));
    CHECK(part == NULL);
    MUST(ncclCommDestroy(job.comm));
    return 0;
  }
  const char* const way = getenv("SHRINK");
  const int names = way == NULL || !is(way, "gone");
  MUST(ncclCommShrink(job.comm, names ? &last : NULL, names, &part, NULL, NCCL_SHRINK_ABORT));
  MUST(ncclCommDestroy(job.comm));
  ncclrunStreamSynchronize(NULL); /* what the broken communicator's operations left there, said once */
  MUST(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, part, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  MUST(ncclCommDestroy(part));
  printf("shrunk to %d\n", sum);
  return 0;
}
