/* Very many small operations: every collective in turn, sends and receives, groups, on two communicators at once, and a
 * third that is made and left again and again. Every result is checked, and that memory does not grow after the first
 * tenth. The argument is the number of operations. Rank 0 prints the resident memory then and at the end, in KiB. */
#include <string.h>

#include "must.h"

enum { elements = 8, kinds = 10, maxRanks = 8, madeAgainEvery = 5000 };

static Job job;
static ncclComm_t comms[2];
static int from[2][maxRanks * elements], to[2][maxRanks * elements];

static int value(int rank, int i, int round) { return rank * 1000 + i + round % 997; }

/* What `rank` sends in each part, and what everybody's contributions come to. */
static int total(int i, int round) {
  int sum = 0;
  for (int rank = 0; rank < job.size; rank++) sum += value(rank, i, round);
  return sum;
}

static ncclResult_t begin(int which, int kind, int round) {
  int *send = from[which], *receive = to[which];
  const ncclComm_t comm = comms[which];
  const int root = round % job.size, next = (job.rank + 1) % job.size, previous = (job.rank + job.size - 1) % job.size;
  for (int i = 0; i < job.size * elements; i++) send[i] = value(job.rank, i, round);
  memset(receive, 0, sizeof to[which]);
  switch (kind) {
    case 0:
      return ncclAllReduce(send, receive, elements, ncclInt32, ncclSum, comm, NULL);
    case 1:
      return ncclAllGather(send, receive, elements, ncclInt32, comm, NULL);
    case 2:
      return ncclReduceScatter(send, receive, elements, ncclInt32, ncclSum, comm, NULL);
    case 3:
      return ncclBroadcast(send, receive, elements, ncclInt32, root, comm, NULL);
    case 4:
      return ncclReduce(send, receive, elements, ncclInt32, ncclSum, root, comm, NULL);
    case 5:
      return ncclAlltoAll(send, receive, elements, ncclInt32, comm, NULL);
    case 6:
      return ncclGather(send, receive, elements, ncclInt32, root, comm, NULL);
    case 7:
      return ncclScatter(send, receive, elements, ncclInt32, root, comm, NULL);
    case 8:
      MUST(ncclGroupStart());
      MUST(ncclSend(send, elements, ncclInt32, next, comm, NULL));
      MUST(ncclRecv(receive, elements, ncclInt32, previous, comm, NULL));
      return ncclGroupEnd();
    default:
      return ncclrunBarrier(comm, NULL);
  }
}

static void check(int which, int kind, int round) {
  const int root = round % job.size, isRoot = job.rank == root, previous = (job.rank + job.size - 1) % job.size;
  const int parts = kind == 1 || kind == 5 || kind == 6 ? job.size : 1;
  if ((kind == 4 || kind == 6) && !isRoot) return;
  for (int k = 0; k < parts * elements; k++) {
    const int part = k / elements, i = k % elements, mine = job.rank * elements + i;
    const int expected[kinds] = {total(i, round),           value(part, i, round),
                                 total(mine, round),        value(root, i, round),
                                 total(i, round),           value(part, mine, round),
                                 value(part, i, round),     value(root, mine, round),
                                 value(previous, i, round), 0};
    CHECK(to[which][k] == expected[kind]);
  }
}

static long residentKiB(void) {
  long pages, resident;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%ld %ld", &pages, &resident) == 2 && fclose(file) == 0);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void makeAgain(void) {
  MUST(ncclCommDestroy(comms[1]));
  MUST(ncclCommSplit(comms[0], 0, job.rank, &comms[1], NULL));
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int operations = atoi(argv[1]);
  job = joinJob();
  CHECK(job.size <= maxRanks);
  comms[0] = job.comm;
  MUST(ncclCommSplit(job.comm, 0, job.rank, &comms[1], NULL));
  long early = 0;
  for (int done = 0, round = 0; done < operations; round++) {
    const int kind = round % kinds, other = (round / kinds) % kinds, grouped = round % 3 == 0;
    if (grouped) MUST(ncclGroupStart());
    MUST(begin(0, kind, round));
    MUST(begin(1, other, round));
    if (grouped) MUST(ncclGroupEnd());
    MUST(ncclrunStreamSynchronize(NULL));
    check(0, kind, round);
    check(1, other, round);
    done += 2;
    if (round % madeAgainEvery == 0) makeAgain();
    if (early == 0 && done >= operations / 10) early = residentKiB();
  }
  const long late = residentKiB();
  if (job.rank == 0) printf("%ld %ld\n", early, late);
  CHECK(late - early < 1024);
  for (int i = 1; i >= 0; i--) MUST(ncclCommDestroy(comms[i]));
  return 0;
}
