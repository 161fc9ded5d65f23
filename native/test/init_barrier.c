/* The shortest whole life of a communicator: join the communicator of all ranks, barrier, end. The launch-to-wired
 * benchmark times it. */
#include <stdio.h>
#include <stdlib.h>

#include "nccl.h"
#include "ncclrun.h"

static int failed(const char* what, ncclResult_t result) {
  if (result == ncclSuccess) return 0;
  fprintf(stderr, "%s: %s: %s\n", what, ncclGetErrorString(result), ncclGetLastError(NULL));
  return 1;
}

/* Rank k of a host takes its GPU k, if there is one. */
static int takeGpu(void) {
  int gpus = 0;
  const char* local = getenv("NCCLRUN_LOCAL_RANK");
  if (failed("ncclrunGpuCount", ncclrunGpuCount(&gpus))) return 1;
  if (gpus == 0 || local == NULL) return 0;
  return failed("ncclrunGpuUse", ncclrunGpuUse(atoi(local) % gpus));
}

int main(void) {
  ncclUniqueId id;
  ncclComm_t comm;
  int size;
  int rank;
  if (takeGpu()) return 1;
  if (failed("ncclrunGetJob", ncclrunGetJob(&id, &size, &rank))) return 1;
  if (failed("ncclCommInitRank", ncclCommInitRank(&comm, size, id, rank))) return 1;
  if (failed("ncclrunBarrier", ncclrunBarrier(comm, NULL))) return 1;
  if (failed("ncclrunStreamSynchronize", ncclrunStreamSynchronize(NULL))) return 1;
  if (failed("ncclCommFinalize", ncclCommFinalize(comm))) return 1;
  return failed("ncclCommDestroy", ncclCommDestroy(comm));
}
