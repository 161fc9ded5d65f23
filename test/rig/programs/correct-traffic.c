/* Correct traffic that looks as if something were wrong: ranks that come late for many reasons, and whom nobody may be
 * told of. Every wait is shorter than LONGEST milliseconds.
 *
 *   correct-traffic SECONDS SEED LONGEST */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "must.h"

enum { most = 20000, maxRanks = 16, ahead = 4096 };

static Job job;
static ncclComm_t pairs; /* ranks 0 and 1, 2 and 3, ... */
static int from[most * maxRanks], to[most * maxRanks];
static double longest;

static unsigned next(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void compute(double ms) {
  const double until = milliseconds() + ms;
  while (milliseconds() < until) continue;
}

/* Writes a checkpoint for so long. */
static void save(double ms) {
  static char block[1 << 16];
  char path[] = "/tmp/ncclrun-traffic-XXXXXX";
  const int file = mkstemp(path);
  CHECK(file >= 0 && unlink(path) == 0);
  const double until = milliseconds() + ms;
  for (int i = 0; milliseconds() < until; i++) {
    CHECK(pwrite(file, block, sizeof block, (i % 64) * (off_t)sizeof block) == sizeof block);
    if (i % 16 == 0) CHECK(fsync(file) == 0);
  }
  CHECK(close(file) == 0);
}

static char stateOf(pid_t process) {
  char path[64], state = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
  FILE* const file = fopen(path, "r");
  CHECK(file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && fclose(file) == 0);
  return state;
}

/* As a debugger does it. */
static void stopFor(double ms) {
  const pid_t own = getpid(), child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    while (stateOf(own) != 'T') usleep(100); /* a signal to go on that comes before would be lost */
    usleep((useconds_t)(ms * 1000));
    kill(own, SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
  CHECK(waitpid(child, NULL, 0) == child);
}

static void reduce(ncclComm_t comm, size_t count) {
  MUST(ncclAllReduce(from, to, count, ncclInt32, ncclSum, comm, NULL));
}

static void await(void) { MUST(ncclrunStreamSynchronize(NULL)); }

/* Stages that take unequally long. */
static void pipeline(int steps, double ms) {
  for (int i = 0; i < steps; i++) {
    if (job.rank > 0) MUST(ncclRecv(to, 100, ncclInt32, job.rank - 1, job.comm, NULL));
    await();
    usleep((useconds_t)(ms * 1000 * (job.rank + 1) / job.size));
    if (job.rank + 1 < job.size) MUST(ncclSend(from, 100, ncclInt32, job.rank + 1, job.comm, NULL));
    await();
  }
}

static void others(unsigned kind, size_t count, int root) {
  if (kind == 0) MUST(ncclAllGather(from, to, count, ncclInt32, job.comm, NULL));
  if (kind == 1) MUST(ncclReduceScatter(from, to, count, ncclInt32, ncclSum, job.comm, NULL));
  if (kind == 2) MUST(ncclBroadcast(from, to, count, ncclInt32, root, job.comm, NULL));
  if (kind == 3) MUST(ncclAlltoAll(from, to, count, ncclInt32, job.comm, NULL));
  if (kind == 4) MUST(ncclrunBarrier(job.comm, NULL));
  if (kind >= 5) reduce(job.comm, count);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  unsigned shared = (unsigned)atoi(argv[2]);
  longest = atof(argv[3]);
  job = joinJob();
  CHECK(job.size <= maxRanks);
  unsigned own = shared + (unsigned)job.rank + 1;
  MUST(ncclCommSplit(job.comm, job.rank / 2, job.rank, &pairs, NULL));
  const double until = milliseconds() + 1e3 * atoi(argv[1]);
  int over = 0, isOver = 0, rounds = 0;
  for (; !isOver; rounds++) {
    const unsigned what = next(&shared) % 16;
    const int late = (int)(next(&shared) % (unsigned)job.size);
    const double ms = longest * (next(&shared) % 1000) / 1000;
    const size_t count = 1 + next(&shared) % most;
    const unsigned kind = next(&shared) % 8;
    if (what == 0 && job.rank == 0) compute(ms);
    if (what == 1 && job.rank == late) save(ms);
    if (what == 2 && job.rank == late) stopFor(ms);
    if (what == 3 && job.rank == late) usleep((useconds_t)(ms * 1000));
    if (what == 4) pipeline(8, ms / 16);
    /* One rank is thousands of calls ahead of the others. */
    for (int i = 0; what == 5 && i < ahead; i++) MUST(ncclBroadcast(from, to, 2, ncclInt32, late, job.comm, NULL));
    if (what == 5 && job.rank != late) usleep((useconds_t)(ms * 1000));
    for (int i = 0; what == 6 && i < 200; i++) reduce(pairs, count % 500 + 1);
    if (what > 6 && next(&own) % 4 == 0) usleep(next(&own) % 20000);
    others(kind, count, late);
    await();
    /* Rank 0's clock says for all when it is over. */
    over = milliseconds() > until;
    MUST(ncclBroadcast(&over, &isOver, 1, ncclInt32, 0, job.comm, NULL));
    await();
  }
  MUST(ncclCommDestroy(pairs));
  MUST(ncclCommDestroy(job.comm));
  if (job.rank == 0) printf("%d rounds\n", rounds);
  return 0;
}
