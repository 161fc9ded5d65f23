/* Several ranks in one process: made by one thread together, and by a thread each. Prints "ok". */
#include <pthread.h>

#include "must.h"

enum { ranks = 3, rounds = 200 };

/* One thread holds all ranks: one group, every rank on the default stream. */
static void sumOver(ncclComm_t* comms, int count) {
  int values[ranks], sums[ranks];
  int expected = 0;
  MUST(ncclGroupStart());
  for (int rank = 0; rank < count; rank++) {
    values[rank] = 1 << rank;
    expected += values[rank];
    MUST(ncclAllReduce(&values[rank], &sums[rank], 1, ncclInt32, ncclSum, comms[rank], NULL));
  }
  MUST(ncclGroupEnd());
  MUST(ncclrunStreamSynchronize(NULL));
  for (int rank = 0; rank < count; rank++) CHECK(sums[rank] == expected);
}

static void together(void) {
  ncclComm_t comms[ranks], others[ranks], parts[ranks];
  const int twice[ranks] = {2, 0, 2}, once[ranks] = {2, 0, 1};
  CHECK(ncclCommInitAll(comms, ranks, twice) == ncclInvalidUsage && comms[0] == NULL);
  CHECK(ncclCommInitAll(comms, 0, NULL) == ncclInvalidArgument);
  MUST(ncclCommInitAll(comms, ranks, NULL));
  MUST(ncclCommInitAll(others, ranks, once));
  for (int rank = 0; rank < ranks; rank++) {
    int size, number;
    MUST(ncclCommCount(comms[rank], &size));
    MUST(ncclCommUserRank(comms[rank], &number));
    CHECK(size == ranks && number == rank);
  }
  sumOver(comms, ranks);

  /* Two communicators in one group, begun in another order by each rank. */
  int values[2][ranks], sums[2][ranks];
  MUST(ncclGroupStart());
  for (int i = 0; i < 2 * ranks; i++) {
    const int rank = i / 2, which = (i + rank) % 2;
    values[which][rank] = 1;
    ncclComm_t comm = which == 0 ? comms[rank] : others[rank];
    MUST(ncclAllReduce(&values[which][rank], &sums[which][rank], 1, ncclInt32, ncclSum, comm, NULL));
  }
  MUST(ncclGroupEnd());
  MUST(ncclrunStreamSynchronize(NULL));
  for (int i = 0; i < 2 * ranks; i++) CHECK(sums[i % 2][i / 2] == ranks);

  MUST(ncclGroupStart());
  for (int rank = 0; rank < ranks; rank++) {
    MUST(ncclCommSplit(comms[rank], rank == 1 ? NCCL_SPLIT_NOCOLOR : 0, -rank, &parts[rank], NULL));
  }
  MUST(ncclGroupEnd());
  CHECK(parts[1] == NULL);
  ncclComm_t pair[2] = {parts[0], parts[2]};
  sumOver(pair, 2);
  for (int rank = 0; rank < ranks; rank++) {
    if (parts[rank] != NULL) MUST(ncclCommDestroy(parts[rank]));
    MUST(ncclCommDestroy(others[rank]));
    MUST(ncclCommDestroy(comms[rank]));
  }
}

/* A thread is a rank of two communicators, which odd ranks join the other way round. */
static ncclUniqueId ids[2];
static void* beRank(void* argument) {
  const int rank = *(const int*)argument;
  ncclComm_t comms[2];
  MUST(ncclGroupStart());
  for (int i = 0; i < 2; i++) MUST(ncclCommInitRank(&comms[(i + rank) % 2], ranks, ids[(i + rank) % 2], rank));
  MUST(ncclGroupEnd());
  /* Each round has numbers of its own, because ranks wait for them at different times. */
  static double values[ranks][rounds], first[ranks][rounds], second[ranks][rounds];
  for (int round = 0; round < rounds; round++) {
    values[rank][round] = rank + round;
    MUST(ncclAllReduce(&values[rank][round], &first[rank][round], 1, ncclFloat64, ncclSum, comms[0], NULL));
    MUST(ncclAllReduce(&first[rank][round], &second[rank][round], 1, ncclFloat64, ncclSum, comms[1], NULL));
    if (round % 3 != rank) continue;
    MUST(ncclrunStreamSynchronize(NULL));
    CHECK(first[rank][round] == 3 + 3 * round && second[rank][round] == 9 + 9 * round);
  }
  MUST(ncclrunStreamSynchronize(NULL));
  for (int i = 0; i < 2; i++) MUST(ncclCommDestroy(comms[i]));
  return NULL;
}

int main(void) {
  together();
  MUST(ncclGetUniqueId(&ids[0]));
  MUST(ncclGetUniqueId(&ids[1]));
  pthread_t threads[ranks];
  int numbers[ranks];
  for (int rank = 0; rank < ranks; rank++) {
    numbers[rank] = rank;
    CHECK(pthread_create(&threads[rank], NULL, beRank, &numbers[rank]) == 0);
  }
  for (int rank = 0; rank < ranks; rank++) CHECK(pthread_join(threads[rank], NULL) == 0);
  puts("ok");
  return 0;
}
