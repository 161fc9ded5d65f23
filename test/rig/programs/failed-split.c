/* Rank 0 has a group that fails after ncclCommSplit (or ncclCommShrink); afterwards it splits anew, which is the first
 * split that counts for all. */
#include "must.h"

static void checkSum(ncclComm_t comm, int size) {
  int value = 1, sum = 0;
  MUST(ncclAllReduce(&value, &sum, 1, ncclInt32, ncclSum, comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  CHECK(sum == size);
}

static void failAfterSplit(ncclComm_t comm) {
  ncclComm_t part = (ncclComm_t)&part;
  MUST(ncclGroupStart());
  MUST(ncclCommSplit(comm, 0, 0, &part, NULL));
  CHECK(ncclAllReduce(NULL, NULL, 1, ncclInt32, ncclNumOps, comm, NULL) != ncclSuccess);
  CHECK(ncclGroupEnd() != ncclSuccess);
  CHECK(part == NULL);
}

static void failAfterShrink(ncclComm_t comm, int excluded) {
  ncclComm_t part = (ncclComm_t)&part;
  MUST(ncclGroupStart());
  MUST(ncclCommShrink(comm, &excluded, 1, &part, NULL, NCCL_SHRINK_DEFAULT));
  CHECK(ncclAllReduce(NULL, NULL, 1, ncclInt32, ncclNumOps, comm, NULL) != ncclSuccess);
  CHECK(ncclGroupEnd() != ncclSuccess);
  CHECK(part == NULL);
}

int main(void) {
  alarm(30);
  const Job job = joinJob();
  int last = job.size - 1;
  ncclComm_t part;
  if (job.rank == 0) failAfterSplit(job.comm);
  MUST(ncclCommSplit(job.comm, 0, job.rank, &part, NULL));
  checkSum(part, job.size);
  MUST(ncclCommDestroy(part));
  if (job.rank == 0) failAfterShrink(job.comm, last);
  if (job.rank != last) {
    MUST(ncclCommShrink(job.comm, &last, 1, &part, NULL, NCCL_SHRINK_DEFAULT));
    checkSum(part, job.size - 1);
    MUST(ncclCommDestroy(part));
  }
  MUST(ncclCommDestroy(job.comm));
  puts("ok");
  return 0;
}
