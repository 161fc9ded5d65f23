/*
 * Ranks that go on when one of them dies: 1000 steps, each a sum over all ranks that are left. The last rank kills
 * itself in the middle, as if its host had failed; the others make a communicator without it, and do the step again.
 *
 *     cc -I native/include examples/shrink.c build/libnccl.so.2 -Wl,-rpath,$PWD/build -o shrink
 *     npx ncclrun --on-failure shrink -n 4 ./shrink
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "ncclrun.h"

static void check(ncclResult_t result) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "%s\n", ncclGetLastError(NULL));
  exit(1);
}

/* The sum over all ranks; what is not ncclSuccess has no sum. */
static ncclResult_t sumOf(int value, int* sum, ncclComm_t comm, ncclrunStream_t stream) {
  const ncclResult_t result = ncclAllReduce(&value, sum, 1, ncclInt, ncclSum, comm, (cudaStream_t)stream);
  return result == ncclSuccess ? ncclrunStreamSynchronize(stream) : result;
}

int main(void) {
  ncclUniqueId id;
  int size, rank;
  ncclComm_t comm;
  ncclrunStream_t stream;
  check(ncclrunGetJob(&id, &size, &rank));
  check(ncclCommInitRank(&comm, size, id, rank));
  check(ncclrunStreamCreate(&stream));

  const int last = size - 1;
  int left = 0;
  for (int step = 0; step < 1000; step++) {
    if (rank == last && step == 500) raise(SIGKILL);
    ncclResult_t result;
    while ((result = sumOf(1, &left, comm, stream)) == ncclRemoteError) {
      /* Somebody is gone. No rank is named: whoever has died is left out, and all that live meet here. */
      ncclComm_t smaller;
      check(ncclCommShrink(comm, NULL, 0, &smaller, NULL, NCCL_SHRINK_ABORT));
      check(ncclCommAbort(comm));
      comm = smaller;
    }
    check(result);
  }
  printf("rank %d: %d steps done, %d ranks are left\n", rank, 1000, left);

  check(ncclrunStreamDestroy(stream));
  check(ncclCommDestroy(comm));
  return 0;
}
