/* The third collective of rank 1 differs from the others' in what the first argument names. Every rank goes on
 * calling until it is told, and prints what. The second argument is a directory that all ranks see. */
#include <string.h>

#include "must.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  alarm(30);
  const char* what = argv[1];
  const Job job = joinJob();
  static char buffer[1 << 20];
  ncclResult_t result = ncclSuccess;
  for (int i = 1; result == ncclSuccess; i++) {
    const int odd = i == 3 && job.rank == 1;
    const size_t count = odd && strcmp(what, "count") == 0 ? 2000 : 1000;
    const ncclDataType_t type = odd && strcmp(what, "type") == 0 ? ncclFloat32 : ncclInt32;
    const ncclRedOp_t op = odd && strcmp(what, "operator") == 0 ? ncclMax : ncclSum;
    const int nobody = strcmp(what, "nobody") == 0; /* each waits for another */
    int root = nobody && i == 3 && !odd;
    if (odd && strcmp(what, "root") == 0) root = 1;
    if (odd && strcmp(what, "other") == 0) root = 2; /* rank 0 waits for nobody, rank 1 for ever */
    /* The first two need all ranks: none may still be joining when the third goes wrong. */
    const int broadcast = i > 2 && (nobody || strcmp(what, "root") == 0 || strcmp(what, "other") == 0 ||
                                    (odd && strcmp(what, "kind") == 0) ||
                                    (strcmp(what, "order") == 0 && (job.rank == 1 ? i == 4 : i == 3)));
    result = broadcast ? ncclBroadcast(buffer, buffer, count, type, root, job.comm, NULL)
                       : ncclAllReduce(buffer, buffer, count, type, op, job.comm, NULL);
    if (result == ncclSuccess) result = ncclrunStreamSynchronize(NULL);
    if (i > 2) usleep(2000);
  }
  printf("%d: %s\n", result, ncclGetLastError(NULL));
  fflush(stdout);
  say("told", job.rank, argv[2]);
  awaitAll("told", job.size, argv[2]); /* by themselves, not because this one leaves */
  ncclCommDestroy(job.comm);
  return 0;
}
