/* Ranks whose collectives differ are told so, also where they keep in step and sizes are equal; ranks whose calls fit
 * together are left alone.
 *
 *   calls RANKS order|steady|once|together
 *     order     messages stand before a collective in one rank's group and behind it in another's: no difference
 *     steady    one rank's all_reduce takes the maximum, the others' the sum, again and again
 *     once      one rank's, once, among many that are alike; told at the latest as the ranks leave
 *     together  the same in a group of several collectives
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "rank.h"

enum { count = 64, alike = 20, max = 200000, groups = 3 };

static const char* what;
static ncclComm_t comm;
static cudaStream_t stream;
static char *send, *receive;

/* The agent looks four times a second, and twice before it believes what it sees. */
static void beSeen(void) { usleep(800000); }

static void order(void) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (int i = 0; i < groups; i++) {
    at("group %d", i);
    MUST(ncclGroupStart());
    if (rank % 2 == 0) MUST(ncclAllReduce(send, receive, count, ncclInt32, ncclSum, comm, stream));
    MUST(ncclSend(send, count, ncclInt32, next, comm, stream));
    MUST(ncclRecv(receive + 4096, count, ncclInt32, previous, comm, stream));
    if (rank % 2 == 1) MUST(ncclAllReduce(send, receive, count, ncclInt32, ncclSum, comm, stream));
    MUST(ncclGroupEnd());
    if (rank == 1) beSeen(); /* the others are in the next operation meanwhile */
    at("all_gather %d", i);
    MUST(ncclAllGather(send, receive, count, ncclInt32, comm, stream));
    MUST(ended(stream));
    meet();
  }
  at("leaving");
  MUST(ncclCommDestroy(comm));
}

static ncclResult_t sum(int odd) {
  return ncclAllReduce(send, receive, count, ncclInt32, odd && rank == 1 ? ncclMax : ncclSum, comm, stream);
}

static void expectSentence(void) {
  const char* const said = ncclGetLastError(comm);
  if (strstr(said, "calls differ") == NULL) failed("told: %s", said);
}

static void steady(void) {
  ncclResult_t result = ncclSuccess;
  int calls = 0;
  for (; result == ncclSuccess && calls < max; calls++) {
    at("call %d", calls);
    result = sum(1);
    if (result == ncclSuccess && ended(stream) != ncclSuccess) result = told(comm);
    if (result == ncclSuccess) MUST(ncclCommGetAsyncError(comm, &result));
  }
  if (result == ncclSuccess) failed("nothing was told after %d calls", calls);
  SAME(result, ncclInvalidUsage);
  expectSentence();
  meet(); /* by themselves, not because another leaves */
  MUST(ncclCommDestroy(comm));
}

/* Whoever leaves first has nobody to compare with. */
static void once(int together) {
  for (int i = 0; i < alike; i++) MUST(sum(0));
  if (together) MUST(ncclGroupStart());
  MUST(sum(1));
  MUST(sum(0));
  if (together) MUST(ncclGroupEnd());
  ended(stream);
  meet();
  at("leaving");
  ncclResult_t before = ncclSuccess;
  MUST(ncclCommGetAsyncError(comm, &before));
  const ncclResult_t result = ncclCommDestroy(comm);
  if (before != ncclSuccess || result != ncclSuccess) {
    SAME(before == ncclSuccess ? result : before, ncclInvalidUsage);
    expectSentence();
    atomic_fetch_add(&page->made[maxIds - 1], 1);
  }
  meet();
  HOLDS(atomic_load(&page->made[maxIds - 1]) > 0);
}

static void body(void) {
  at("joining");
  comm = joinAll();
  stream = makeStream();
  send = makeMemory(1 << 16);
  receive = makeMemory(1 << 16);
  if (strcmp(what, "order") == 0) order();
  if (strcmp(what, "steady") == 0) steady();
  if (strcmp(what, "once") == 0) once(0);
  if (strcmp(what, "together") == 0) once(1);
  endStream(stream);
  freeMemory(send);
  freeMemory(receive);
}

int main(int argc, char** argv) {
  what = argc == 3 ? argv[2] : "";
  if (strstr("order steady once together", what) == NULL || argc != 3 || atoi(argv[1]) < 2) {
    fprintf(stderr, "usage: calls RANKS order|steady|once|together   (2 ranks at least)\n");
    return 2;
  }
  const int status = startProcesses(atoi(argv[1]), 60, body);
  if (status == 0) printf("calls: %s ranks, %s: right\n", argv[1], what);
  return status;
}
