/* On which device ranks are, on a machine with GPUs: without kernels that fit, a communicator is refused by name; on
 * the host device it is buffers in a GPU's memory that are.
 *
 *   choice RANKS none|others|cut|host    all but host: with a library in LD_PRELOAD that has such kernels beside it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "rank.h"

static const char* what;

static void says(const char* wanted) {
  const char* said = ncclGetLastError(NULL);
  if (strstr(said, wanted) == NULL) failed("\"%s\" does not say \"%s\"", said, wanted);
}

static void refusedBy(ncclResult_t code, const char* sentence) {
  ncclComm_t comm = NULL;
  const ncclUniqueId id = nextId();
  useDevice(gpuOf(rank));
  const ncclResult_t result = ncclCommInitRank(&comm, ranks, id, rank);
  if (result != ncclRemoteError) SAME(result, code); /* or another rank found it first, and says the same */
  says(sentence);
}

static void refusesGpuMemory(void) {
  useDevice(gpuOf(rank));
  int* const memory = makeMemory(sizeof(int));
  HOLDS(setenv("NCCLRUN_DEVICE", "host", 1) == 0);
  const ncclComm_t comm = joinAll();
  REFUSED(ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comm, NULL), ncclInvalidArgument);
  says("memory of GPU ");
  says("host device");
  int number = 1;
  MUST(ncclAllReduce(&number, &number, 1, ncclInt32, ncclSum, comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  SAME(number, ranks);
  MUST(ncclCommDestroy(comm));
  unsetenv("NCCLRUN_DEVICE");
  freeMemory(memory);
}

static void body(void) {
  if (strcmp(what, "none") == 0) return refusedBy(ncclInvalidUsage, "there are no kernels for GPUs in ");
  if (strcmp(what, "others") == 0) return refusedBy(ncclInvalidUsage, "has compute capability ");
  if (strcmp(what, "cut") == 0) return refusedBy(ncclSystemError, ".fatbin are not whole");
  refusesGpuMemory();
}

int main(int argc, char** argv) {
  what = argc == 3 ? argv[2] : "";
  if (strcmp(what, "none") != 0 && strcmp(what, "others") != 0 && strcmp(what, "cut") != 0 &&
      strcmp(what, "host") != 0) {
    fprintf(stderr, "usage: choice RANKS none|others|cut|host\n");
    return 2;
  }
  const int status = startProcesses(atoi(argv[1]), 30, body);
  if (status == 0) printf("choice: %s ranks, %s: right\n", argv[1], what);
  return status;
}
