/* Rank 0 sends to rank 1, message after message: MB/s as rank 1 sees it. Usage: send_one_way BYTES MESSAGES. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ncclrun.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void must(ncclResult_t result) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "send_one_way: %s\n", ncclGetLastError(NULL));
  exit(1);
}

int main(int argc, char** argv) {
  ncclUniqueId id;
  int size, rank;
  ncclComm_t comm;
  if (argc != 3) return 2;
  const size_t bytes = strtoul(argv[1], NULL, 10);
  const int messages = atoi(argv[2]), warmup = 2;
  must(ncclrunGetJob(&id, &size, &rank));
  must(ncclCommInitRank(&comm, size, id, rank));
  char* data = calloc(bytes, 1);
  double begin = 0;
  for (int i = 0; i < warmup + messages; i++) {
    if (i == warmup) {
      must(ncclrunStreamSynchronize(NULL));
      must(ncclrunBarrier(comm, NULL));
      must(ncclrunStreamSynchronize(NULL));
      begin = now();
    }
    must(rank == 0 ? ncclSend(data, bytes, ncclInt8, 1, comm, NULL) : ncclRecv(data, bytes, ncclInt8, 0, comm, NULL));
  }
  must(ncclrunStreamSynchronize(NULL));
  if (rank == 1) printf("%.1f\n", (double)bytes * messages / (now() - begin) / 1e6);
  must(ncclCommDestroy(comm));
  free(data);
  return 0;
}
