/*
 * Every rank joins the job's communicator and says who it is; together they count who is there.
 *
 *     cc -I native/include examples/hello.c build/libnccl.so.2 -Wl,-rpath,$PWD/build -o hello
 *     npx ncclrun -n 4 ./hello
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ncclrun.h"

static void check(ncclResult_t result) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "%s\n", ncclGetLastError(NULL));
  exit(1);
}

int main(void) {
  ncclUniqueId id;
  int size, rank;
  ncclComm_t comm;
  check(ncclrunGetJob(&id, &size, &rank));
  check(ncclCommInitRank(&comm, size, id, rank));

  char host[256] = "";
  gethostname(host, sizeof host - 1);
  printf("hello from rank %d of %d on %s\n", rank, size, host);

  ncclrunStream_t stream;
  check(ncclrunStreamCreate(&stream));
  int one = 1, present = 0;
  check(ncclAllReduce(&one, &present, 1, ncclInt, ncclSum, comm, (cudaStream_t)stream));
  check(ncclrunStreamSynchronize(stream));
  if (rank == 0) printf("all %d are there\n", present);

  check(ncclrunStreamDestroy(stream));
  check(ncclCommDestroy(comm));
  return 0;
}
