/* Ranks that compute and all-reduce in turn, of which one computes longer.
 *
 *   straggle STEPS MILLISECONDS RANK PERCENT [COUNT=1024] */
#include "must.h"

int main(int argc, char** argv) {
  if (argc < 5 || argc > 6) return 2;
  const size_t count = argc == 6 ? (size_t)atol(argv[5]) : 1024;
  const int steps = atoi(argv[1]), faulty = atoi(argv[3]);
  const double usual = atof(argv[2]), percent = atof(argv[4]);
  const Job job = joinJob();
  const double mine = usual * (job.rank == faulty ? 1 + percent / 100 : 1);
  float* const from = calloc(2 * count, sizeof *from);
  if (from == NULL) return 1;
  for (int i = 0; i < steps; i++) {
    usleep((useconds_t)(mine * 1000));
    MUST(ncclAllReduce(from, from + count, count, ncclFloat32, ncclSum, job.comm, NULL));
    MUST(ncclrunStreamSynchronize(NULL));
  }
  MUST(ncclCommDestroy(job.comm));
  free(from);
  return 0;
}
