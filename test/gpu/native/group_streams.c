/* One group over two streams: a rank sends on one and receives on the other, more than any connection holds. What
 * either stream has before comes before the whole group, and what it has afterwards comes after all of it.
 *
 *   group_streams RANKS ROUNDS MOST    MOST: largest message in bytes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "rank.h"

static int rounds;
static size_t max;

static char valueOf(int from, int round) { return (char)(from * 31 + round * 7 + 1); }

static void checkAll(const char* seen, size_t bytes, char expected) {
  for (size_t i = 0; i < bytes; i++) {
    if (seen[i] != expected) failed("byte %zu of %zu is %d, expected %d", i, bytes, seen[i], expected);
  }
}

static void body(void) {
  at("joining");
  ncclComm_t comm = joinAll();
  const cudaStream_t sending = makeStream(), receiving = makeStream();
  char *send = makeMemory(max), *receive = makeMemory(max);
  char *source = malloc(max), *bySender = malloc(max), *byReceiver = malloc(max);
  HOLDS(source != NULL && bySender != NULL && byReceiver != NULL);
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (int round = 0; round < rounds; round++) {
    const size_t bytes = round % 3 == 0 ? 8 : max >> (round % 3 - 1) * 4;
    at("round %d of %zu bytes", round, bytes);
    memset(source, valueOf(rank, round), bytes);
    copy(send, source, bytes, sending);
    MUST(ncclGroupStart());
    MUST(ncclSend(send, bytes, ncclInt8, next, comm, sending));
    MUST(ncclRecv(receive, bytes, ncclInt8, previous, comm, receiving));
    MUST(ncclGroupEnd());
    copy(bySender, receive, bytes, sending);
    copy(byReceiver, receive, bytes, receiving);
    MUST(ended(sending));
    MUST(ended(receiving));
    checkAll(bySender, bytes, valueOf(previous, round));
    checkAll(byReceiver, bytes, valueOf(previous, round));
  }
  at("leaving");
  MUST(ncclCommDestroy(comm));
  endStream(sending);
  endStream(receiving);
  freeMemory(send);
  freeMemory(receive);
  free(source);
  free(bySender);
  free(byReceiver);
}

int main(int argc, char** argv) {
  if (argc != 4 || atoi(argv[1]) < 2) {
    fprintf(stderr, "usage: group_streams RANKS ROUNDS MOST   (2 ranks at least)\n");
    return 2;
  }
  rounds = atoi(argv[2]);
  max = (size_t)atoll(argv[3]);
  const int status = startProcesses(atoi(argv[1]), 60, body);
  if (status == 0) printf("group_streams: %s ranks, %d rounds: right\n", argv[1], rounds);
  return status;
}
