/* The peers' side of all_reduce: back-to-back MPI_Allreduce of floats, out of place, timed as `ncclrun perf` times.
 * Usage: mpi_all_reduce BEGIN END FACTOR WARMUP ITERATIONS; a line "bytes microseconds" per size, of the slowest rank's
 * mean. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double mean_microseconds(const float* from, float* to, int count, int warmup, int iterations) {
  for (int i = 0; i < warmup; i++) MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int i = 0; i < iterations; i++) MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  double mine = (MPI_Wtime() - start) * 1e6 / iterations, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 6) {
    fprintf(stderr, "usage: mpi_all_reduce BEGIN END FACTOR WARMUP ITERATIONS\n");
    return 2;
  }
  long begin = atol(argv[1]), end = atol(argv[2]), factor = atol(argv[3]);
  int warmup = atoi(argv[4]), iterations = atoi(argv[5]), rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float *from = malloc(end), *to = malloc(end);
  for (long i = 0; i < end / 4; i++) from[i] = (float)(i % 7 + rank), to[i] = 0;
  for (long bytes = begin; bytes <= end; bytes *= factor) {
    double microseconds = mean_microseconds(from, to, (int)(bytes / 4), warmup, iterations);
    if (rank == 0) printf("%ld %.3f\n", bytes, microseconds);
  }
  free(from);
  free(to);
  return MPI_Finalize();
}
