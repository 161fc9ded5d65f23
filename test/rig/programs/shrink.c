/* Shrinks the job's communicator while all its ranks live: whole, in the middle of operations, revoked, and where the
 * ranks do not agree. At least three ranks. The argument is a directory of the test's. Prints "ok" at rank 0. */
#include <string.h>

#include "must.h"

/* The communicator has these ranks of the job, in this order. */
static void expectMembers(ncclComm_t comm, int rank, const int* members, int count) {
  int size, place;
  MUST(ncclCommCount(comm, &size));
  MUST(ncclCommUserRank(comm, &place));
  CHECK(size == count && place < count && members[place] == rank);
  int* seen = malloc((size_t)count * sizeof *seen);
  MUST(ncclAllGather(&rank, seen, 1, ncclInt32, comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  for (int i = 0; i < count; i++) CHECK(seen[i] == members[i]);
  free(seen);
}

static void expectSentence(const char* words) {
  if (strstr(ncclGetLastError(NULL), words) != NULL) return;
  fprintf(stderr, "'%s' is not in: %s\n", words, ncclGetLastError(NULL));
  exit(1);
}

/* A communicator of all ranks, which all have. */
static ncclComm_t another(const Job* job) {
  ncclComm_t world;
  MUST(ncclCommSplit(job->comm, 0, 0, &world, NULL));
  MUST(ncclrunBarrier(job->comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  return world;
}

static ncclResult_t await(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) MUST(ncclCommGetAsyncError(comm, &state));
  return state;
}

static void refusesWrongArguments(const Job* job) {
  ncclComm_t part;
  int self = job->rank, beyond = job->size, other = (job->rank + 1) % job->size, twice[] = {other, other};
  CHECK(ncclCommShrink(job->comm, NULL, 1, &part, NULL, 0) == ncclInvalidArgument);
  CHECK(ncclCommShrink(job->comm, &other, 0, &part, NULL, 0) == ncclInvalidArgument);
  CHECK(ncclCommShrink(job->comm, &other, 1, NULL, NULL, 0) == ncclInvalidArgument);
  CHECK(ncclCommShrink(job->comm, &other, 1, &part, NULL, 4) == ncclInvalidArgument);
  CHECK(ncclCommShrink(job->comm, &self, 1, &part, NULL, 0) == ncclInvalidArgument);
  expectSentence("the caller");
  CHECK(ncclCommShrink(job->comm, &beyond, 1, &part, NULL, 0) == ncclInvalidArgument);
  expectSentence("the communicator has ranks 0 to");
  CHECK(ncclCommShrink(job->comm, twice, 2, &part, NULL, 0) == ncclInvalidArgument);
  expectSentence("twice");
  CHECK(part == NULL);
  CHECK(ncclCommRevoke(job->comm, 1) == ncclInvalidArgument);
}

/* The parent stays in use; parts of parts; in a group; without waiting; not with ranks that were left out before. */
static void shrinksWhole(const Job* job, int* members) {
  const int size = job->size, rank = job->rank;
  ncclComm_t world = another(job), part, again;
  ncclrunCommInfo info;
  int first = 0, last = size - 1;
  for (int i = 0; i < size; i++) members[i] = i;
  if (rank != last) {
    MUST(ncclCommShrink(world, &last, 1, &part, NULL, NCCL_SHRINK_DEFAULT));
    expectMembers(part, rank, members, size - 1);
    if (rank != 0) {
      MUST(ncclCommShrink(part, &first, 1, &again, NULL, NCCL_SHRINK_DEFAULT));
      expectMembers(again, rank, members + 1, size - 2);
      MUST(ncclCommDestroy(again));
    }
    MUST(ncclCommDestroy(part));
  }
  expectMembers(world, rank, members, size);
  MUST(ncclrunCommGetInfo(world, &info));
  if (rank != 0 && info.hosts == 1) {
    CHECK(ncclCommShrink(world, &first, 1, &part, NULL, NCCL_SHRINK_DEFAULT) == ncclInvalidUsage);
    expectSentence("which an earlier one left out");
  }
  expectMembers(world, rank, members, size);
  MUST(ncclCommDestroy(world));
  world = another(job);
  if (rank != 0) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    MUST(ncclGroupStart());
    MUST(ncclCommShrink(world, &first, 1, &part, NULL, NCCL_SHRINK_DEFAULT));
    MUST(ncclGroupEnd());
    CHECK(ncclCommShrink(part, &first, 1, &again, &config, NCCL_SHRINK_DEFAULT) == (rank == 1 ? 4 : ncclInProgress));
    if (rank != 1) CHECK(await(again) == ncclSuccess);
    if (rank != 1) expectMembers(again, rank, members + 2, size - 2);
    if (rank != 1) MUST(ncclCommDestroy(again));
    MUST(ncclCommDestroy(part));
  }
  expectMembers(world, rank, members, size);
  MUST(ncclCommDestroy(world));
}

/* Rank 0 leaves out the last one, rank 1 somebody else; the next shrink finds them agreed. */
static void refusesDisagreement(const Job* job, int* members) {
  ncclComm_t part;
  int other = job->rank == 0 ? job->size - 1 : 0;
  if (job->rank > 1) return;
  CHECK(ncclCommShrink(job->comm, &other, 1, &part, NULL, NCCL_SHRINK_DEFAULT) == ncclInvalidArgument);
  expectSentence("the ranks left out differ in shrink");
  CHECK(part == NULL);
  int* rest = malloc((size_t)job->size * sizeof *rest);
  for (int i = 2; i < job->size; i++) rest[i - 2] = i;
  MUST(ncclCommShrink(job->comm, rest, job->size - 2, &part, NULL, NCCL_SHRINK_DEFAULT));
  expectMembers(part, job->rank, members, 2);
  MUST(ncclCommDestroy(part));
  free(rest);
}

/* The last rank waits in an operation that the others have not all called. */
static void abortsOperations(const Job* job, int* members) {
  ncclComm_t world = another(job), part;
  int last = job->size - 1, sum;
  ncclResult_t result = ncclInvalidUsage;
  if (job->rank != 0) result = ncclAllReduce(&last, &sum, 1, ncclInt32, ncclSum, world, NULL);
  if (job->rank == last) {
    if (result == ncclSuccess) result = ncclrunStreamSynchronize(NULL);
    CHECK(result == ncclRemoteError);
    expectSentence("ended the operations of the communicator");
  } else {
    MUST(ncclCommShrink(world, &last, 1, &part, NULL, NCCL_SHRINK_ABORT));
    if (result == ncclSuccess) CHECK(ncclrunStreamSynchronize(NULL) != ncclSuccess);
    expectMembers(part, job->rank, members, last);
    CHECK(ncclrunBarrier(world, NULL) == ncclInvalidUsage);
    expectSentence("was revoked");
    MUST(ncclCommDestroy(part));
  }
  MUST(ncclCommDestroy(another(job))); /* the last rank has been told before anybody leaves */
  MUST(ncclCommDestroy(world));
}

static void revokes(const Job* job, int* members) {
  ncclComm_t world = another(job), part;
  int one = 1, sum;
  ncclResult_t state, result = ncclInvalidUsage;
  if (job->rank != 0) result = ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, world, NULL);
  MUST(ncclCommRevoke(world, NCCL_REVOKE_DEFAULT));
  MUST(ncclCommRevoke(world, NCCL_REVOKE_DEFAULT));
  if (result == ncclSuccess) CHECK(ncclrunStreamSynchronize(NULL) != ncclSuccess);
  MUST(ncclCommGetAsyncError(world, &state));
  CHECK(state == ncclSuccess);
  CHECK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, world, NULL) == ncclInvalidUsage);
  CHECK(ncclCommFinalize(world) == ncclInvalidUsage);
  MUST(ncclCommSplit(world, 0, 0, &part, NULL));
  expectMembers(part, job->rank, members, job->size);
  MUST(ncclCommDestroy(part));
  MUST(ncclCommDestroy(world));
}

int main(void) {
  alarm(60);
  const Job job = joinJob();
  int* members = malloc((size_t)job.size * sizeof *members);
  refusesWrongArguments(&job);
  shrinksWhole(&job, members);
  refusesDisagreement(&job, members);
  abortsOperations(&job, members);
  revokes(&job, members);
  MUST(ncclCommDestroy(job.comm));
  free(members);
  if (job.rank == 0) puts("ok");
  return 0;
}
