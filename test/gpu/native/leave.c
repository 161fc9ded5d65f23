/* A rank that leaves in order concerns only those that need it: what it has taken part in ends well however late others
 * come, and what it has not called fails with ncclInvalidUsage, whether it was called before or is later.
 *
 *   leave RANKS */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"
#include "rank.h"

enum { count = 1000, late = 1200000 /* microseconds: longer than who waits in vain is left waiting */ };

static ncclComm_t comm;
static cudaStream_t stream;
static int* memory;

static ncclResult_t reduce(void) { return ncclAllReduce(memory, memory, count, ncclInt32, ncclSum, comm, stream); }

static void begin(const char* name) {
  at("%s: joining", name);
  comm = joinAll();
  MUST(reduce());
  MUST(ended(stream));
  meet();
  at("%s", name);
}

static void leave(void) { MUST(ncclCommDestroy(comm)); }

/* Refused by the call, or told by the communicator. */
static void expectUnequal(ncclResult_t result) {
  must("what was told", result != ncclSuccess ? result : told(comm), ncclInvalidUsage);
  ended(stream); /* on the host device: what the operation ended with, said once */
}

/* The first rank leaves as soon as its part is done, the last one comes late, and those between wait for it. */
static void afterItsPart(void) {
  begin("after its part");
  if (rank == ranks - 1) usleep(late);
  MUST(ncclBroadcast(memory, memory, count, ncclInt32, 0, comm, stream));
  if (rank == 1 && ranks > 2) MUST(ncclRecv(memory, count, ncclInt32, ranks - 1, comm, stream));
  if (rank == ranks - 1 && ranks > 2) MUST(ncclSend(memory, count, ncclInt32, 1, comm, stream));
  MUST(ended(stream));
  leave();
  meet();
}

/* `before`: the others wait for it by then. */
static void withoutCalling(const char* name, int before) {
  begin(name);
  if (rank == 0) {
    if (before) meet();
    leave();
    if (!before) meet();
  } else {
    if (!before) meet();
    const ncclResult_t result = reduce();
    if (before) meet();
    expectUnequal(result);
  }
  meet(); /* who is told and leaves is one more for whom those wait that were not told yet */
  if (rank > 0) leave();
  meet();
}

/* One rank needs it, alone. */
static void message(const char* name, int sends) {
  begin(name);
  if (rank == 0) leave();
  meet();
  if (rank == 1) {
    expectUnequal(sends ? ncclSend(memory, count, ncclInt32, 0, comm, stream)
                        : ncclRecv(memory, count, ncclInt32, 0, comm, stream));
  }
  meet();
  if (rank > 1) {
    ncclResult_t error = ncclInternalError;
    MUST(ncclCommGetAsyncError(comm, &error));
    MUST(error);
  }
  meet();
  if (rank > 0) leave();
  meet();
}

static void body(void) {
  stream = makeStream();
  memory = makeMemory(count * sizeof *memory);
  afterItsPart();
  withoutCalling("while others wait for it", 1);
  withoutCalling("before others need it", 0);
  message("before another one receives from it", 0);
  message("before another one sends to it", 1);
  freeMemory(memory);
  endStream(stream);
}

int main(int argc, char** argv) {
  const int started = argc > 1 ? atoi(argv[1]) : 0;
  if (started < 2) {
    fprintf(stderr, "usage: leave RANKS   (2 ranks at least)\n");
    return 2;
  }
  const int status = startProcesses(started, 60, body);
  if (status == 0) printf("leave: %d ranks: who needed it was told, and nobody else\n", started);
  return status;
}
