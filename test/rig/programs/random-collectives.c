/* Random collectives of random sizes, checked element by element, for so many seconds; ranks come late at random. The
 * arguments are the seconds and a seed, the same on all ranks. Rank 0 prints the number of operations. */
#include <string.h>

#include "must.h"

enum { maxElements = 200000, maxRanks = 16, kinds = 7 };

static Job job;
static int send[maxElements * maxRanks], receive[maxElements * maxRanks];

static unsigned next(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static int value(int rank, int i, int round) { return rank * 1009 + i % 4001 + round % 997; }

static int total(int i, int round) {
  int sum = 0;
  for (int rank = 0; rank < job.size; rank++) sum += value(rank, i, round);
  return sum;
}

static ncclResult_t begin(unsigned kind, size_t count, int root) {
  const int after = (job.rank + 1) % job.size, before = (job.rank + job.size - 1) % job.size;
  switch (kind) {
    case 0:
      return ncclAllReduce(send, receive, count, ncclInt32, ncclSum, job.comm, NULL);
    case 1:
      return ncclAllGather(send, receive, count, ncclInt32, job.comm, NULL);
    case 2:
      return ncclReduceScatter(send, receive, count, ncclInt32, ncclSum, job.comm, NULL);
    case 3:
      return ncclBroadcast(send, receive, count, ncclInt32, root, job.comm, NULL);
    case 4:
      return ncclAlltoAll(send, receive, count, ncclInt32, job.comm, NULL);
    case 5:
      return ncclReduce(send, receive, count, ncclInt32, ncclSum, root, job.comm, NULL);
    default:
      MUST(ncclGroupStart());
      MUST(ncclSend(send, count, ncclInt32, after, job.comm, NULL));
      MUST(ncclRecv(receive, count, ncclInt32, before, job.comm, NULL));
      return ncclGroupEnd();
  }
}

static int expected(unsigned kind, int part, int i, int count, int root, int round) {
  const int mine = job.rank * count + i, before = (job.rank + job.size - 1) % job.size;
  switch (kind) {
    case 1:
      return value(part, i, round);
    case 2:
      return total(mine, round);
    case 3:
      return value(root, i, round);
    case 4:
      return value(part, mine, round);
    case 6:
      return value(before, i, round);
    default:
      return total(i, round);
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  job = joinJob();
  CHECK(job.size <= maxRanks);
  unsigned shared = (unsigned)atoi(argv[2]), own = shared + (unsigned)job.rank + 1;
  const double until = milliseconds() + 1e3 * atoi(argv[1]);
  int round = 0, isOver = 0;
  for (; !isOver; round++) {
    const unsigned kind = next(&shared) % kinds;
    /* As many small ones as large ones. */
    const size_t count = 1 + next(&shared) % (next(&shared) % 2 == 0 ? 2000u : (unsigned)maxElements);
    const int root = (int)(next(&shared) % (unsigned)job.size);
    const int parts = kind == 1 || kind == 4 ? job.size : 1;
    const size_t sent = kind == 2 || kind == 4 ? count * (size_t)job.size : count;
    for (size_t i = 0; i < sent; i++) send[i] = value(job.rank, (int)i, round);
    memset(receive, 0, sizeof(int) * count * (size_t)parts);
    if (next(&own) % 8 == 0) usleep(next(&own) % 20000);
    MUST(begin(kind, count, root));
    MUST(ncclrunStreamSynchronize(NULL));
    for (size_t k = 0; (kind != 5 || job.rank == root) && k < count * (size_t)parts; k++)
      CHECK(receive[k] == expected(kind, (int)(k / count), (int)(k % count), (int)count, root, round));
    /* Rank 0's clock says for all when it is over. */
    int over = milliseconds() > until;
    MUST(ncclBroadcast(&over, &isOver, 1, ncclInt32, 0, job.comm, NULL));
    MUST(ncclrunStreamSynchronize(NULL));
  }
  MUST(ncclCommDestroy(job.comm));
  if (job.rank == 0) printf("%d operations\n", round);
  return 0;
}
