/* A rank that makes a mistake, and then does what it should.
 *
 *   debug          joins the job's communicator, calls an operation wrongly, then rightly
 *   debug begin    the same, but only begins to join: prints what ncclCommInitRank returned, and waits until it is
 * ready */
#include <string.h>

#include "must.h"

int main(int argc, char** argv) {
  ncclUniqueId id;
  int size, rank, one = 1, sum = 0;
  ncclComm_t comm;
  MUST(ncclrunGetJob(&id, &size, &rank));
  const ncclResult_t begun = ncclCommInitRank(&comm, size, id, rank);
  if (begun != ncclInProgress) MUST(begun);
  if (argc == 2 && strcmp(argv[1], "begin") == 0) printf("%d\n", begun);
  for (ncclResult_t state = begun; state == ncclInProgress;) MUST(ncclCommGetAsyncError(comm, &state));
  CHECK(ncclAllReduce(&one, &sum, 1, (ncclDataType_t)99, ncclSum, comm, NULL) == ncclInvalidArgument);
  MUST(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  CHECK(sum == size);
  ncclResult_t state = ncclCommFinalize(comm);
  while (state == ncclInProgress) MUST(ncclCommGetAsyncError(comm, &state));
  MUST(ncclCommDestroy(comm));
  return 0;
}
