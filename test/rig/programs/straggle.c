/* Ranks that compute and exchange data in turn, of which one computes longer.
 *
 *   straggle STEPS MILLISECONDS RANK PERCENT [COUNT=1024 [allReduce|allGather|reduceScatter [TIMES=1]]]
 *
 * TIMES: collectives in a row in each step. */
#include <string.h>

#include "must.h"

int main(int argc, char** argv) {
  if (argc < 5 || argc > 8) return 2;
  const size_t count = argc > 5 ? (size_t)atol(argv[5]) : 1024;
  const char* const collective = argc > 6 ? argv[6] : "allReduce";
  const int times = argc > 7 ? atoi(argv[7]) : 1;
  const int steps = atoi(argv[1]), faulty = atoi(argv[3]);
  const double usual = atof(argv[2]), percent = atof(argv[4]);
  const Job job = joinJob();
  int ranks;
  MUST(ncclCommCount(job.comm, &ranks));
  const size_t part = count / (size_t)ranks;
  const double mine = usual * (job.rank == faulty ? 1 + percent / 100 : 1);
  float* const from = calloc(2 * count, sizeof *from);
  if (from == NULL) return 1;
  for (int i = 0; i < steps; i++) {
    usleep((useconds_t)(mine * 1000));
    for (int k = 0; k < times; k++) {
      if (strcmp(collective, "allGather") == 0)
        MUST(ncclAllGather(from, from + count, part, ncclFloat32, job.comm, NULL));
      else if (strcmp(collective, "reduceScatter") == 0)
        MUST(ncclReduceScatter(from, from + count, part, ncclFloat32, ncclSum, job.comm, NULL));
      else
        MUST(ncclAllReduce(from, from + count, count, ncclFloat32, ncclSum, job.comm, NULL));
      MUST(ncclrunStreamSynchronize(NULL));
    }
  }
  MUST(ncclCommDestroy(job.comm));
  free(from);
  return 0;
}
