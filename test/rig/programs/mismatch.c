/* The third collective of rank 1 differs from the others' in what the argument names. Every rank goes on calling until
 * it is told, and prints what. */
#include <string.h>
#include <unistd.h>

#include "must.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
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
    const int root = odd && strcmp(what, "root") == 0 ? 1 : 0;
    const int broadcast = strcmp(what, "root") == 0 || (odd && strcmp(what, "kind") == 0) ||
                          (strcmp(what, "order") == 0 && (job.rank == 1 ? i == 4 : i == 3));
    result = broadcast ? ncclBroadcast(buffer, buffer, count, type, root, job.comm, NULL)
                       : ncclAllReduce(buffer, buffer, count, type, op, job.comm, NULL);
    if (result == ncclSuccess) result = ncclrunStreamSynchronize(NULL);
    if (i > 2) usleep(2000);
  }
  printf("%d: %s\n", result, ncclGetLastError(NULL));
  fflush(stdout);
  sleep(2); /* the others learn it by themselves */
  ncclCommDestroy(job.comm);
  return 0;
}
