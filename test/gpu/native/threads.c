/* Several ranks in one process: a thread each, with several communicators that threads call in the same order and in
 * opposite orders; and one thread with all of them, through groups and ncclCommInitAll.
 *
 *   threads RANKS ROUNDS */
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "rank.h"
#include "work.h"

enum { several = 3, maxInARow = 200, maxInAGroup = 40, maxCount = 30000 };

static int rounds;

/* One rank of one process: its communicators, each on a stream of its own. */
typedef struct {
  int rank;
  ncclComm_t comms[several];
  cudaStream_t streams[several];
  Arena arena;
  Work works[several][maxInARow];
} Member;

static void begin(Member* member, int number) {
  member->rank = number;
  useDevice(number);
  member->arena = makeArena((size_t)several * maxInARow * (1 << 18));
  for (int i = 0; i < several; i++) member->streams[i] = makeStream();
}

static void placeRow(Member* member, uint64_t seed, int count) {
  clearArena(&member->arena);
  for (int i = 0; i < several; i++) {
    for (int k = 0; k < count; k++) {
      Work work = drawWork(&seed, maxCount, member->rank, ranks);
      work.count = (work.count + (size_t)ranks - 1) / (size_t)ranks;
      member->works[i][k] = work;
      HOLDS(place(&member->arena, &member->works[i][k]));
    }
  }
  useDevice(member->rank);
  upload(&member->arena);
}

static void postOne(const Member* member, int which, int k) {
  post(&member->arena, &member->works[which][k], member->comms[which], member->streams[which]);
}

static void checkRow(Member* member, int count) {
  useDevice(member->rank);
  for (int i = 0; i < several; i++) MUST(ended(member->streams[i]));
  download(&member->arena);
  for (int i = 0; i < several; i++) {
    for (int k = 0; k < count; k++) check(&member->arena, &member->works[i][k]);
  }
}

static void end(Member* member) {
  useDevice(member->rank);
  for (int i = 0; i < several; i++) endStream(member->streams[i]);
  endArena(&member->arena);
}

static int rowFrom(int done, int max) { return rounds - done < max ? rounds - done : max; }

/* order 0: all threads in the same order; 1: odd ranks backwards; 2: each begins with another one. */
static void rows(Member* member, int order) {
  for (int done = 0; done < rounds; done += maxInARow) {
    const int count = rowFrom(done, maxInARow);
    at("rounds from %d on, order %d", done, order);
    placeRow(member, (uint64_t)done + 40, count);
    for (int k = 0; k < count; k++) {
      for (int i = 0; i < several; i++) {
        const int backwards = order == 1 && rank % 2;
        postOne(member, backwards ? several - 1 - i : order == 2 ? (i + rank) % several : i, k);
      }
    }
    checkRow(member, count);
  }
}

static void threadBody(void) {
  static Member members[maxRanks];
  Member* member = &members[rank];
  begin(member, rank);
  at("joining one after the other");
  for (int i = 0; i < several - 1; i++) member->comms[i] = joinAll();
  at("splitting");
  MUST(ncclCommSplit(member->comms[0], 0, rank, &member->comms[several - 1], NULL));
  for (int order = 0; order < 3; order++) rows(member, order);
  at("joining in opposite orders");
  for (int i = 0; i < several; i++) MUST(ncclCommDestroy(member->comms[i]));
  ncclUniqueId ids[several];
  for (int i = 0; i < several; i++) ids[i] = nextId();
  MUST(ncclGroupStart());
  for (int i = 0; i < several; i++) {
    const int which = (i + rank) % several;
    MUST(ncclCommInitRank(&member->comms[which], ranks, ids[which], rank));
  }
  MUST(ncclGroupEnd());
  rows(member, 2);
  at("leaving");
  for (int i = 0; i < several; i++) MUST(ncclCommDestroy(member->comms[(i + rank) % several]));
  end(member);
}

/* --- One thread with all ranks. */

static Member* all;
static int inOneThread; /* how many ranks */

/* One operation of every rank in a group; or all that a row has. */
static void groupedRows(int whole) {
  const int max = whole ? maxInAGroup : maxInARow;
  for (int done = 0; done < rounds; done += max) {
    const int count = rowFrom(done, max);
    at("one thread, rounds from %d on, %s", done, whole ? "in one group" : "a group each");
    for (int r = 0; r < inOneThread; r++) placeRow(&all[r], (uint64_t)done + 50, count);
    if (whole) MUST(ncclGroupStart());
    for (int k = 0; k < count; k++) {
      for (int i = 0; i < several; i++) {
        if (!whole) MUST(ncclGroupStart());
        for (int r = 0; r < inOneThread; r++) postOne(&all[r], (i + (whole ? r : 0)) % several, k);
        if (!whole) MUST(ncclGroupEnd());
      }
    }
    if (whole) MUST(ncclGroupEnd());
    for (int r = 0; r < inOneThread; r++) checkRow(&all[r], count);
  }
}

static void oneThreadBody(void) {
  ncclComm_t comms[maxRanks];
  ranks = inOneThread; /* of the communicators */
  all = calloc((size_t)inOneThread, sizeof *all);
  HOLDS(all != NULL);
  for (int r = 0; r < inOneThread; r++) begin(&all[r], r);
  at("ncclCommInitAll");
  useDevice(0);
  joinAllHere(comms, inOneThread);
  for (int r = 0; r < inOneThread; r++) all[r].comms[0] = comms[r];
  at("joining in a group");
  ncclUniqueId id;
  MUST(ncclGetUniqueId(&id));
  MUST(ncclGroupStart());
  for (int r = 0; r < inOneThread; r++) {
    useDevice(r);
    MUST(ncclCommInitRank(&all[r].comms[1], inOneThread, id, r));
  }
  MUST(ncclGroupEnd());
  at("splitting in a group");
  MUST(ncclGroupStart());
  for (int r = 0; r < inOneThread; r++) {
    useDevice(r);
    MUST(ncclCommSplit(all[r].comms[0], 0, r, &all[r].comms[2], NULL));
  }
  MUST(ncclGroupEnd());
  groupedRows(0);
  groupedRows(1);
  at("leaving");
  for (int i = 0; i < several; i++) {
    for (int r = 0; r < inOneThread; r++) MUST(ncclCommDestroy(all[r].comms[i]));
  }
  for (int r = 0; r < inOneThread; r++) end(&all[r]);
  ranks = 1;
}

int main(int argc, char** argv) {
  const int count = argc == 3 ? atoi(argv[1]) : 0;
  rounds = argc == 3 ? atoi(argv[2]) : 0;
  if (count < 1 || rounds < 1) {
    fprintf(stderr, "usage: threads RANKS ROUNDS\n");
    return 2;
  }
  inOneThread = count;
  int status = startThreads(count, 120, threadBody);
  if (status == 0) status = startProcesses(1, 120, oneThreadBody);
  if (status == 0) printf("threads: %d ranks, %d rounds: right\n", count, rounds);
  return status;
}
