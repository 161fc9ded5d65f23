/* The last rank finalizes the job's communicator while the others split it or sum over it, as the first argument says.
 * The others print what they were told. The second argument is a directory that all ranks see. */
#include <string.h>

#include "must.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  alarm(30);
  const Job job = joinJob();
  int one = 1, sum;
  MUST(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, job.comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  /* Else a rank that is late in this sum may get the error of the next one here. */
  say("summed", job.rank, argv[2]);
  awaitAll("summed", job.size, argv[2]);
  ncclResult_t result;
  if (job.rank == job.size - 1) {
    MUST(ncclCommFinalize(job.comm));
  } else {
    if (strcmp(argv[1], "split") == 0) {
      ncclComm_t part;
      result = ncclCommSplit(job.comm, 0, 0, &part, NULL);
    } else {
      result = ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, job.comm, NULL);
      if (result == ncclSuccess) result = ncclrunStreamSynchronize(NULL);
    }
    printf("%d: %s\n", result, ncclGetLastError(NULL));
    fflush(stdout);
  }
  say("told", job.rank, argv[2]);
  awaitAll("told", job.size, argv[2]);
  MUST(ncclCommDestroy(job.comm));
  return 0;
}
