/* One thread with all ranks, one GPU each: large operations of a group, which the ranks have to agree on before any of
 * them is queued.
 *
 *   one_thread RANKS BYTES    BYTES: that a rank sends */
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "rank.h"

enum { rounds = 3 };

static int count;
static size_t bytes;

typedef struct {
  cudaStream_t stream;
  char *send, *receive, *seen;
} One;

static One begin(int number) {
  useDevice(number);
  One one = {makeStream(), makeMemory(bytes), makeMemory(bytes * (size_t)count), malloc(bytes * (size_t)count)};
  HOLDS(one.seen != NULL);
  for (size_t i = 0; i < bytes; i++) one.seen[i] = (char)(number + 1);
  copy(one.send, one.seen, bytes, one.stream);
  MUST(ended(one.stream));
  return one;
}

static void check(const One* one) {
  copy(one->seen, one->receive, bytes * (size_t)count, one->stream);
  MUST(ended(one->stream));
  for (size_t i = 0; i < bytes * (size_t)count; i++) {
    const char expected = (char)(i / bytes + 1);
    if (one->seen[i] != expected) failed("byte %zu is %d, expected %d", i, one->seen[i], expected);
  }
}

static void body(void) {
  ncclComm_t comms[maxRanks];
  One all[maxRanks];
  for (int i = 0; i < count; i++) all[i] = begin(i);
  at("joining");
  useDevice(0);
  joinAllHere(comms, count);
  for (int round = 0; round < rounds; round++) {
    at("round %d", round);
    MUST(ncclGroupStart());
    for (int i = 0; i < count; i++) {
      MUST(ncclAllGather(all[i].send, all[i].receive, bytes, ncclInt8, comms[i], all[i].stream));
    }
    MUST(ncclGroupEnd());
  }
  for (int i = 0; i < count; i++) {
    useDevice(i);
    check(&all[i]);
    MUST(ncclCommDestroy(comms[i]));
    freeMemory(all[i].send);
    freeMemory(all[i].receive);
    endStream(all[i].stream);
    free(all[i].seen);
  }
}

int main(int argc, char** argv) {
  count = argc == 3 ? atoi(argv[1]) : 0;
  bytes = argc == 3 ? (size_t)atol(argv[2]) : 0;
  if (count < 1 || count > maxRanks || bytes == 0) {
    fprintf(stderr, "usage: one_thread RANKS BYTES\n");
    return 2;
  }
  const int status = startProcesses(1, 60, body);
  if (status == 0) printf("one_thread: %d ranks, %zu bytes each: right\n", count, bytes);
  return status;
}
