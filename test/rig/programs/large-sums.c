/* Large all_reduces, one after the other and each checked, between which the ranks also send around a ring. Rank 0
 * prints "sum N" after each round. All end, with "ok N", after the round in which rank 0 reads the end of its standard
 * input; the arguments are the numbers of elements and, where it is not 0, of rounds. */
#include <fcntl.h>

#include "must.h"

static int isEnd(int rank) {
  char ignored[64];
  return rank == 0 && read(STDIN_FILENO, ignored, sizeof ignored) == 0;
}

static int value(int rank, size_t i, int round) { return rank * 1009 + (int)(i % 4001) + round; }

int main(int argc, char** argv) {
  CHECK(argc == 3);
  const size_t count = strtoul(argv[1], NULL, 10);
  const int rounds = atoi(argv[2]);
  const Job job = joinJob();
  const int next = (job.rank + 1) % job.size, previous = (job.rank + job.size - 1) % job.size;
  int *from = malloc(count * sizeof *from), *to = malloc(count * sizeof *to);
  CHECK(from != NULL && to != NULL && fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) == 0);
  int round = 0;
  for (int isLast = 0; !isLast; round++) {
    const int ends = rounds > 0 ? round + 1 == rounds : isEnd(job.rank);
    for (size_t i = 0; i < count; i++) from[i] = value(job.rank, i, round);
    MUST(ncclAllReduce(from, to, count, ncclInt32, ncclSum, job.comm, NULL));
    MUST(ncclrunStreamSynchronize(NULL));
    for (size_t i = 0; i < count; i++)
      CHECK(to[i] == job.size * value(0, i, round) + 1009 * (job.size * (job.size - 1) / 2));
    MUST(ncclGroupStart());
    MUST(ncclSend(from, count / 2, ncclInt32, next, job.comm, NULL));
    MUST(ncclRecv(to, count / 2, ncclInt32, previous, job.comm, NULL));
    MUST(ncclGroupEnd());
    MUST(ncclAllReduce(&ends, &isLast, 1, ncclInt32, ncclMax, job.comm, NULL));
    MUST(ncclrunStreamSynchronize(NULL));
    for (size_t i = 0; i < count / 2; i++) CHECK(to[i] == value(previous, i, round));
    if (job.rank == 0) printf("sum %d\n", round);
    fflush(stdout);
  }
  MUST(ncclCommDestroy(job.comm));
  printf("ok %d\n", round);
  return 0;
}
