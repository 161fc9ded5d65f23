// An MPI program that prints what each rank sees. With "abort N" rank 1 calls MPI_Abort, with "killed" it kills itself
// after MPI_Init, with "left" it returns without MPI_Init. With "unfinished" all leave without MPI_Finalize.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int expect(int condition, const char* what) {
  if (condition) return 1;
  fprintf(stderr, "mpi-tour: %s\n", what);
  return 0;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const char* told = getenv("NCCLRUN_RANK");
  if (strcmp(mode, "left") == 0 && told != NULL && strcmp(told, "1") == 0) return 0;

  MPI_Init(&argc, &argv);
  int rank = -1;
  int size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 1 && strcmp(mode, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
  if (rank == 1 && strcmp(mode, "killed") == 0) raise(SIGKILL);

  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  int word = rank == size - 1 ? 42 : 0;
  MPI_Bcast(&word, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  int* all = calloc((size_t)size, sizeof *all);
  MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  int good = 1;
  for (int i = 0; i < size; ++i) good &= expect(all[i] == i, "MPI_Allgather is wrong");
  free(all);

  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  int local = -1;
  int together = -1;
  MPI_Comm_rank(host, &local);
  MPI_Comm_size(host, &together);
  MPI_Comm_free(&host);

  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  int inHalf = -1;
  MPI_Comm_rank(half, &inHalf);
  MPI_Barrier(half);
  MPI_Comm_free(&half);

  printf("rank %d of %d sum %d broadcast %d local %d of %d split %d\n", rank, size, sum, word, local, together, inHalf);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(mode, "unfinished") == 0) _exit(good ? 0 : 1);
  MPI_Finalize();
  return good ? 0 : 1;
}
