/* Small operations that go one way for a while, from or to one rank, alone or with all-reduces in between, then others:
 * each rank runs ahead as far as it has been told that it may. Some ranks group the messages that others call one after
 * the other. In a program's first communicator, and in a later one, whose connections have fewer slots.
 *
 *   one_way RANKS ROUNDS MOST    MOST: elements of the largest operation */
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "rank.h"
#include "work.h"

enum { communicators = 5, operations = 100, longest = 20 };

static int rounds;
static size_t max;

static const WorkKind oneWay[] = {workPass, workPass, workBroadcast, workReduce, workGather, workScatter};
static const WorkKind others[] = {workAllReduce, workAllGather, workAllToAll, workReduceScatter, workShift};

#define PICK(kinds) (kinds[draw(seed) % (sizeof kinds / sizeof *kinds)])

/* Of a root as many as it comes to: one way, large all-reduces and one way in turn, or a few others. */
static void prepare(Arena* arena, Work* works, uint64_t* seed) {
  clearArena(arena);
  WorkKind kind = workPass;
  int until = 0, alternates = 0, root = 0;
  for (int i = 0; i < operations; i++) {
    if (i == until) {
      const unsigned what = draw(seed) % 4;
      until = i + 1 + (int)(draw(seed) % (what > 0 ? longest : 2));
      alternates = what == 1;
      root = (int)(draw(seed) % (unsigned)ranks);
      kind = what > 0 ? PICK(oneWay) : PICK(others);
    } else if (alternates) {
      kind = kind == workAllReduce ? PICK(oneWay) : workAllReduce;
    }
    const size_t count = kind == workAllReduce ? max - draw(seed) % (max / 4 + 1) : drawCount(seed, max);
    works[i] = (Work){.kind = kind, .count = count, .root = root, .seed = draw(seed), .rank = rank, .ranks = ranks};
    HOLDS(place(arena, &works[i]));
  }
  upload(arena);
}

/* Of several messages in a row: whether this rank calls them in a group. */
static int groups(const Work* works, int i, uint64_t* own) {
  return i + 1 < operations && works[i].kind == workPass && works[i + 1].kind == workPass && draw(own) % 3 == 0;
}

static void body(void) {
  ncclComm_t comms[communicators];
  for (int i = 0; i < communicators; i++) comms[i] = joinAll();
  const cudaStream_t stream = makeStream();
  const size_t bytes = (size_t)operations * 2 * (size_t)(ranks + 1) * (max * sizeof(int32_t) + 512);
  Arena arena = makeArena(bytes);
  Work works[operations];
  uint64_t seed = 1, own = (uint64_t)rank + 2;
  for (int round = 0; round < rounds; round++) {
    at("round %d", round);
    prepare(&arena, works, &seed);
    const ncclComm_t comm = comms[round % 2 * (communicators - 1)];
    for (int i = 0; i < operations; i++) {
      const int two = groups(works, i, &own);
      if (two) MUST(ncclGroupStart());
      post(&arena, &works[i], comm, stream);
      if (!two) continue;
      post(&arena, &works[++i], comm, stream);
      MUST(ncclGroupEnd());
    }
    MUST(ended(stream));
    download(&arena);
    for (int i = 0; i < operations; i++) check(&arena, &works[i]);
  }
  for (int i = 0; i < communicators; i++) MUST(ncclCommDestroy(comms[i]));
  endStream(stream);
  endArena(&arena);
}

int main(int argc, char** argv) {
  rounds = argc == 4 ? atoi(argv[2]) : 0;
  max = argc == 4 ? (size_t)atoll(argv[3]) : 0;
  if (rounds < 1 || max < 1 || atoi(argv[1]) < 2) {
    fprintf(stderr, "usage: one_way RANKS ROUNDS MOST   (2 ranks at least)\n");
    return 2;
  }
  const int count = atoi(argv[1]);
  const int status = startProcesses(count, 120, body);
  if (status == 0) printf("one_way: %d ranks, %d rounds, up to %zu elements: right\n", count, rounds, max);
  return status;
}
