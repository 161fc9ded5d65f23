/* The peers' side of the collectives: back-to-back calls on floats, out of place, timed as `ncclrun perf` times.
 * Usage: mpi_collective NAME BEGIN END FACTOR WARMUP ITERATIONS, NAME as in `ncclrun perf`; a line "bytes microseconds"
 * per size (of the larger buffer of a rank), of the slowest rank's mean. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ranks;

static void all_reduce(const float* from, float* to, int count) {
  MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void all_gather(const float* from, float* to, int count) {
  MPI_Allgather(from, count / ranks, MPI_FLOAT, to, count / ranks, MPI_FLOAT, MPI_COMM_WORLD);
}
static void reduce_scatter(const float* from, float* to, int count) {
  MPI_Reduce_scatter_block(from, to, count / ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
/* In place: there is no other. */
static void broadcast(const float* from, float* to, int count) {
  (void)from;
  MPI_Bcast(to, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void alltoall(const float* from, float* to, int count) {
  MPI_Alltoall(from, count / ranks, MPI_FLOAT, to, count / ranks, MPI_FLOAT, MPI_COMM_WORLD);
}

typedef void (*Collective)(const float* from, float* to, int count);
static const struct {
  const char* name;
  Collective run;
} collectives[] = {{"all_reduce", all_reduce},
                   {"all_gather", all_gather},
                   {"reduce_scatter", reduce_scatter},
                   {"broadcast", broadcast},
                   {"alltoall", alltoall}};

/* Successive operations use successive places of the buffers, which hold `total` floats, as `ncclrun perf` does. */
static void repeat(Collective run, const float* from, float* to, long count, long total, int times) {
  for (int i = 0; i < times; i++) {
    long place = i % (total / count) * count;
    run(from + place, to + place, (int)count);
  }
}

static double mean_microseconds(Collective run, const float* from, float* to, long count, long total, int warmup,
                                int iterations) {
  repeat(run, from, to, count, total, warmup);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  repeat(run, from, to, count, total, iterations);
  double mine = (MPI_Wtime() - start) * 1e6 / iterations, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Collective run = NULL;
  for (size_t i = 0; argc == 7 && i < sizeof collectives / sizeof *collectives; i++) {
    if (strcmp(argv[1], collectives[i].name) == 0) run = collectives[i].run;
  }
  if (run == NULL) {
    fprintf(stderr, "usage: mpi_collective NAME BEGIN END FACTOR WARMUP ITERATIONS\n");
    return 2;
  }
  long begin = atol(argv[2]), end = atol(argv[3]), factor = atol(argv[4]);
  int warmup = atoi(argv[5]), iterations = atoi(argv[6]), rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  float *from = malloc(end), *to = malloc(end);
  for (long i = 0; i < end / 4; i++) from[i] = (float)(i % 7 + rank), to[i] = 0;
  for (long bytes = begin; bytes <= end; bytes *= factor) {
    double microseconds = mean_microseconds(run, from, to, bytes / 4, end / 4, warmup, iterations);
    if (rank == 0) printf("%ld %.3f\n", bytes, microseconds);
  }
  free(from);
  free(to);
  return MPI_Finalize();
}
