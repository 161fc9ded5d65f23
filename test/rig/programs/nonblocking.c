/* Two ranks with a non-blocking communicator that never do the same: rank 0 joins one whose peer does not come, and
 * aborts it; then it begins a collective that its peer does not call, and aborts that. All its calls return at once; it
 * prints how long each took: INIT REFUSED ABORT COLLECTIVE ABORT in milliseconds, a line per round. The first argument
 * is a directory that both see, the second the number of rounds. */
#include <string.h>

#include "must.h"

static const char* directory;
static double begun;
static void begin(void) { begun = milliseconds(); }
static void end(void) { printf("%.3f ", milliseconds() - begun); }

static ncclResult_t stateOf(ncclComm_t comm) {
  ncclResult_t state;
  MUST(ncclCommGetAsyncError(comm, &state));
  return state;
}

static ncclResult_t join(ncclComm_t* comm, ncclUniqueId id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return ncclCommInitRankConfig(comm, 2, id, rank, &config);
}

/* The peer is not started. */
static void alone(void) {
  ncclUniqueId id;
  ncclComm_t comm;
  int value = 0;
  MUST(ncclGetUniqueId(&id));
  begin();
  const ncclResult_t joined = join(&comm, id, 0);
  end();
  CHECK(joined == ncclInProgress && stateOf(comm) == ncclInProgress);
  begin();
  const ncclResult_t called = ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, NULL);
  end();
  CHECK(called == ncclInvalidUsage && strstr(ncclGetLastError(comm), "still being set up") != NULL);
  CHECK(stateOf(comm) == ncclInProgress);
  begin();
  MUST(ncclCommAbort(comm));
  end();
}

/* The peer has joined, and calls nothing. */
static void together(int rank, int round) {
  char name[32], ready[32];
  snprintf(name, sizeof name, "id-%d", round);
  snprintf(ready, sizeof ready, "ready-%d", round);
  ncclUniqueId id;
  ncclComm_t comm;
  static float values[1 << 20];
  passOn(&id, name, rank, directory);
  CHECK(join(&comm, id, rank) == ncclInProgress);
  while (stateOf(comm) == ncclInProgress) usleep(100);
  CHECK(stateOf(comm) == ncclSuccess);
  say(ready, rank, directory);
  awaitAll(ready, 2, directory);
  snprintf(ready, sizeof ready, "aborted-%d", round);
  if (rank == 1) {
    awaitAll(ready, 1, directory);
    CHECK(stateOf(comm) == ncclSuccess); /* it waits for nobody */
    MUST(ncclCommAbort(comm));
    return;
  }
  begin();
  MUST(ncclAllReduce(values, values, 1 << 20, ncclFloat32, ncclSum, comm, NULL));
  end();
  CHECK(ncclrunStreamQuery(NULL) == ncclInProgress && stateOf(comm) == ncclSuccess);
  begin();
  MUST(ncclCommAbort(comm));
  end();
  say(ready, rank, directory);
  CHECK(ncclrunStreamSynchronize(NULL) == ncclInvalidUsage); /* what the collective ended with */
  puts("");
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  directory = argv[1];
  ncclUniqueId id;
  int size, rank;
  MUST(ncclrunGetJob(&id, &size, &rank));
  CHECK(size == 2);
  for (int round = 0; round < atoi(argv[2]); round++) {
    if (rank == 0) alone();
    together(rank, round);
  }
  return 0;
}
