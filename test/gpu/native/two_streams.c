/* Overlapping communicators on two streams: A of all ranks on one; B, of all ranks too, and C, a part of A, on the
 * other. Ranks call them in opposite orders, with nothing that waits in between.
 *
 *   two_streams RANKS ROUNDS MEGABYTES collectives|messages
 *
 * MEGABYTES: of the operations between two looks at the results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "rank.h"
#include "work.h"

enum { communicators = 3, maxInARow = 4096, maxCount = 1 << 20 };

static int rounds, messages;
static size_t bytesInARow;
static int done; /* by the rank */

typedef struct {
  ncclComm_t comm;
  int rank, size;
  cudaStream_t stream;
} Lane;

static void postRound(const Arena* arena, const Work* works, const Lane* lanes) {
  const int backwards = rank % 2;
  for (int i = 0; i < communicators; i++) {
    const int which = (i + backwards) % communicators; /* B before C everywhere: they share a stream */
    post(arena, &works[which], lanes[which].comm, lanes[which].stream);
  }
}

static int placeRound(Arena* arena, Work* works, const Lane* lanes, uint64_t* state) {
  const size_t used = arena->used;
  for (int which = 0; which < communicators; which++) {
    Work work = drawWork(state, maxCount, lanes[which].rank, lanes[which].size);
    if (messages) work.kind = work.seed % 2 ? workExchange : workShift;
    work.count = (work.count + (size_t)work.ranks - 1) / (size_t)work.ranks;
    works[which] = work;
    if (place(arena, &works[which])) continue;
    arena->used = used;
    return 0;
  }
  return 1;
}

static void body(void) {
  static Work works[maxInARow][communicators];
  Lane lanes[communicators];
  at("making the communicators");
  lanes[0].comm = joinAll();
  lanes[1].comm = joinAll();
  MUST(ncclCommSplit(lanes[0].comm, ranks > 3 ? rank % 2 : 0, -rank, &lanes[2].comm, NULL));
  lanes[0].stream = makeStream();
  lanes[1].stream = lanes[2].stream = makeStream();
  for (int which = 0; which < communicators; which++) {
    MUST(ncclCommCount(lanes[which].comm, &lanes[which].size));
    MUST(ncclCommUserRank(lanes[which].comm, &lanes[which].rank));
  }
  Arena arena = makeArena(bytesInARow);
  uint64_t state = 20;
  while (done < rounds) {
    const int first = done;
    uint64_t next = state;
    clearArena(&arena);
    while (done < rounds && done - first < maxInARow && placeRound(&arena, works[done - first], lanes, &next)) {
      state = next;
      done++;
    }
    at("rounds %d to %d", first, done - 1);
    HOLDS(done > first);
    upload(&arena);
    for (int round = first; round < done; round++) postRound(&arena, works[round - first], lanes);
    at("waiting for rounds %d to %d", first, done - 1);
    MUST(ended(lanes[0].stream));
    MUST(ended(lanes[1].stream));
    download(&arena);
    for (int i = 0; i < (done - first) * communicators; i++) {
      at("round %d, communicator %c", first + i / communicators, 'A' + i % communicators);
      check(&arena, &works[i / communicators][i % communicators]);
    }
  }
  at("leaving");
  for (int which = communicators - 1; which >= 0; which--) MUST(ncclCommDestroy(lanes[which].comm));
  endStream(lanes[0].stream);
  endStream(lanes[1].stream);
  endArena(&arena);
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: two_streams RANKS ROUNDS MEGABYTES collectives|messages\n");
    return 2;
  }
  const int count = atoi(argv[1]);
  rounds = atoi(argv[2]);
  bytesInARow = (size_t)atoi(argv[3]) << 20;
  messages = strcmp(argv[4], "messages") == 0;
  const int status = startProcesses(count, 240, body);
  if (status == 0) printf("two_streams: %d ranks, %d rounds of %s: right\n", count, rounds, argv[4]);
  return status;
}
