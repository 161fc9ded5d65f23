/* What MPI programs with NCCL do, such as NVIDIA's nccl-tests built with MPI=1: MPI finds the ranks and passes on the
 * unique id, NCCL does the work. Every rank prints what it has found, on one line. With "unfinished" the ranks leave
 * without MPI_Finalize, with "threads" MPI is initialised for several threads. */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

#include "must.h"

#define MAX_RANKS 64

/* FNV-1a of the host's name up to its first dot. */
static uint64_t hashOfHost(void) {
  char name[256] = "";
  CHECK(gethostname(name, sizeof name - 1) == 0);
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char* at = name; *at != '\0' && *at != '.'; at++) hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
  return hash;
}

/* Sums of 1 to a million elements; all ranks know the sum of what each rank has. */
static long wrongSums(ncclComm_t comm, int rank, int size) {
  long wrong = 0;
  for (size_t count = 1; count <= 1000000; count *= 100) {
    float* data = malloc(count * sizeof *data);
    CHECK(data != NULL);
    for (size_t i = 0; i < count; i++) data[i] = (float)(rank + 1) + (float)(i % 7);
    MUST(ncclAllReduce(data, data, count, ncclFloat, ncclSum, comm, NULL));
    MUST(ncclrunStreamSynchronize(NULL));
    for (size_t i = 0; i < count; i++)
      wrong += data[i] != (float)(size * (size + 1) / 2) + (float)(size * (int)(i % 7));
    free(data);
  }
  return wrong;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  int level = MPI_THREAD_SINGLE;
  if (strcmp(mode, "threads") == 0) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
  } else {
    MPI_Init(&argc, &argv);
  }
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size <= MAX_RANKS);

  uint64_t hosts[MAX_RANKS] = {0};
  hosts[rank] = hashOfHost();
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, hosts, sizeof *hosts, MPI_BYTE, MPI_COMM_WORLD);
  int first = rank, local = 0, together = 0;
  for (int other = size - 1; other >= 0; other--) {
    if (hosts[other] != hosts[rank]) continue;
    first = other;
    together++;
    local += other < rank;
  }
  MPI_Comm host;
  int inHost, ofHost;
  MPI_Comm_split(MPI_COMM_WORLD, first, rank, &host);
  MPI_Comm_rank(host, &inHost);
  MPI_Comm_size(host, &ofHost);
  MPI_Comm_free(&host);
  CHECK(inHost == local && ofHost == together);

  ncclUniqueId id;
  if (rank == 0) MUST(ncclGetUniqueId(&id));
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  ncclComm_t comm;
  MUST(ncclCommInitRank(&comm, size, id, rank));
  long wrong = wrongSums(comm, rank, size), all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MUST(ncclCommDestroy(comm));
  printf("rank %d of %d local %d of %d wrong %ld\n", rank, size, local, together, all);
  fflush(stdout);
  if (strcmp(mode, "unfinished") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(all != 0);
  }
  MPI_Finalize();
  return all != 0;
}
