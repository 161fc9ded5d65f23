/* Splits the job's communicator in several ways and checks every part by a sum over it. Prints "ok" at rank 0. */
#include "must.h"

/* The part has these ranks of the job, in this order. */
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

int main(void) {
  ncclUniqueId id;
  int size, rank;
  ncclComm_t world, part, again;
  MUST(ncclrunGetJob(&id, &size, &rank));
  MUST(ncclCommInitRank(&world, size, id, rank));
  int* members = malloc((size_t)size * sizeof *members);

  /* Even and odd ranks, each in reverse order. */
  int count = 0;
  for (int i = size - 1; i >= 0; i--) {
    if (i % 2 == rank % 2) members[count++] = i;
  }
  MUST(ncclCommSplit(world, rank % 2, -rank, &part, NULL));
  expectMembers(part, rank, members, count);

  /* A part of a part, while both are in use. */
  MUST(ncclCommSplit(part, 5, 0, &again, NULL));
  expectMembers(again, rank, members, count);
  expectMembers(part, rank, members, count);
  MUST(ncclCommDestroy(again));
  MUST(ncclCommDestroy(part));

  /* Everybody but rank 0; equal keys keep the order. */
  for (int i = 1; i < size; i++) members[i - 1] = i;
  MUST(ncclCommSplit(world, rank == 0 ? NCCL_SPLIT_NOCOLOR : 7, 3, &part, NULL));
  CHECK((part == NULL) == (rank == 0));
  if (part != NULL) expectMembers(part, rank, members, size - 1);
  if (part != NULL) MUST(ncclCommDestroy(part));

  /* Everybody alone, twice with the same colours: two communicators. */
  ncclComm_t first, second;
  MUST(ncclCommSplit(world, rank, 0, &first, NULL));
  MUST(ncclCommSplit(world, rank, 0, &second, NULL));
  expectMembers(first, rank, &rank, 1);
  expectMembers(second, rank, &rank, 1);
  MUST(ncclCommDestroy(first));
  MUST(ncclCommDestroy(second));

  /* Begun in a group, and without waiting. */
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  MUST(ncclGroupStart());
  MUST(ncclCommSplit(world, 0, rank, &first, NULL));
  MUST(ncclCommSplit(world, 0, -rank, &second, NULL));
  MUST(ncclGroupEnd());
  for (int i = 0; i < size; i++) members[i] = i;
  expectMembers(first, rank, members, size);
  CHECK(ncclCommSplit(first, 1, 0, &part, &config) == ncclInProgress);
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) MUST(ncclCommGetAsyncError(part, &state));
  CHECK(state == ncclSuccess);
  expectMembers(part, rank, members, size);
  for (int i = 0; i < size; i++) members[i] = size - 1 - i;
  expectMembers(second, rank, members, size);

  CHECK(ncclCommSplit(world, -2, 0, &again, NULL) == ncclInvalidArgument);
  CHECK(again == NULL);
  MUST(ncclCommDestroy(part));
  MUST(ncclCommDestroy(first));
  MUST(ncclCommDestroy(second));
  MUST(ncclCommDestroy(world));
  free(members);
  if (rank == 0) puts("ok");
  return 0;
}
