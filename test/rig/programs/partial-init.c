/* A rank that joins a communicator of which one rank never comes. Rank 0 makes one of two ranks and is its rank 0; the
 * others, and nobody for the second place, wait until they are ended. With an argument: all ranks but the last join
 * the job's communicator instead. */
#include <stdio.h>
#include <unistd.h>

#include "nccl.h"
#include "ncclrun.h"

int main(int argc, char** argv) {
  (void)argv;
  ncclUniqueId id;
  int size = 0, rank = 0;
  ncclComm_t comm = NULL;
  ncclResult_t result = ncclrunGetJob(&id, &size, &rank);
  if (result == ncclSuccess && argc > 1 && rank < size - 1) result = ncclCommInitRank(&comm, size, id, rank);
  if (result == ncclSuccess && argc == 1 && rank == 0) {
    result = ncclGetUniqueId(&id);
    if (result == ncclSuccess) result = ncclCommInitRank(&comm, 2, id, 0);
  }
  if (result == ncclSuccess) {
    for (;;) pause();
  }
  fprintf(stderr, "%s\n", ncclGetLastError(NULL));
  return 1;
}
