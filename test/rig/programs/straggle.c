/* Ranks that compute and all-reduce in turn, of which one computes longer.
 *
 *   straggle STEPS MILLISECONDS RANK PERCENT */
#include "must.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int steps = atoi(argv[1]), faulty = atoi(argv[3]);
  const double usual = atof(argv[2]), percent = atof(argv[4]);
  const Job job = joinJob();
  const double mine = usual * (job.rank == faulty ? 1 + percent / 100 : 1);
  static float from[1024], to[1024];
  for (int i = 0; i < steps; i++) {
    usleep((useconds_t)(mine * 1000));
    MUST(ncclAllReduce(from, to, 1024, ncclFloat32, ncclSum, job.comm, NULL));
    MUST(ncclrunStreamSynchronize(NULL));
  }
  MUST(ncclCommDestroy(job.comm));
  return 0;
}
