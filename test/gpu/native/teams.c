/* Communicators made of others: by ncclCommSplit, of splits too and used at once with what they were made of; by
 * ncclCommShrink, of living ranks, of a communicator whose operations wait, and after a rank was killed. With and
 * without shared resources.
 *
 *   teams RANKS */
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "rank.h"
#include "work.h"

enum { maxCount = 20000 };

static int shares;
static cudaStream_t streams[2];

static ncclConfig_t settings(void) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = config.shrinkShare = shares;
  return config;
}

static ncclComm_t split(ncclComm_t comm, int color, int key) {
  ncclConfig_t config = settings();
  ncclComm_t part = NULL;
  MUST(ncclCommSplit(comm, color, key, &part, &config));
  HOLDS((part == NULL) == (color == NCCL_SPLIT_NOCOLOR));
  return part;
}

static ncclComm_t shrink(ncclComm_t comm, int without, int flags) {
  ncclConfig_t config = settings();
  ncclComm_t part = NULL;
  MUST(ncclCommShrink(comm, &without, 1, &part, &config, flags));
  return part;
}

/* Our place in the communicator, and who has the places: by rank in the job. */
static void expectMembers(ncclComm_t comm, const int* members, int count) {
  int size = 0, own = 0, seen[maxRanks];
  MUST(ncclCommCount(comm, &size));
  MUST(ncclCommUserRank(comm, &own));
  SAME(size, count);
  SAME(members[own], rank);
  int* const memory = makeMemory(sizeof seen);
  copy(memory + own, &rank, sizeof rank, streams[0]);
  MUST(ncclAllGather(memory + own, memory, 1, ncclInt32, comm, streams[0]));
  copy(seen, memory, (size_t)count * sizeof *seen, streams[0]);
  MUST(ended(streams[0]));
  for (int i = 0; i < count; i++) SAME(seen[i], members[i]);
  freeMemory(memory);
  tryOut(comm, streams[0], maxCount, 8);
}

/* Works of two communicators at the same time: called in turn, each on its own stream. */
static void tryBoth(ncclComm_t one, ncclComm_t other) {
  enum { rounds = 60 };
  const ncclComm_t comms[2] = {one, other};
  Work works[2][rounds];
  Arena arena = makeArena((size_t)64 << 20);
  for (int which = 0; which < 2; which++) {
    int size = 0, own = 0;
    uint64_t seed = 30 + (uint64_t)which;
    MUST(ncclCommCount(comms[which], &size));
    MUST(ncclCommUserRank(comms[which], &own));
    for (int i = 0; i < rounds; i++) {
      works[which][i] = drawWork(&seed, maxCount, own, size);
      HOLDS(place(&arena, &works[which][i]));
    }
  }
  upload(&arena);
  for (int i = 0; i < 2 * rounds; i++) {
    const int which = (i + rank) % 2;
    post(&arena, &works[which][i / 2], comms[which], streams[which]);
  }
  MUST(ended(streams[0]));
  MUST(ended(streams[1]));
  download(&arena);
  for (int i = 0; i < 2 * rounds; i++) check(&arena, &works[i % 2][i / 2]);
  endArena(&arena);
}

static int list(int* members, int from, int to, int step) {
  int count = 0;
  for (int i = from; step > 0 ? i < to : i >= to; i += step) members[count++] = i;
  return count;
}

static void splits(ncclComm_t world) {
  int members[maxRanks];
  at("split into odd and even, resources shared: %d", shares);
  ncclComm_t half = split(world, rank % 2, 0);
  expectMembers(half, members, list(members, rank % 2, ranks, 2));
  at("split backwards, resources shared: %d", shares);
  ncclComm_t backwards = split(world, 7, -rank);
  expectMembers(backwards, members, list(members, ranks - 1, 0, -1));
  at("split off, resources shared: %d", shares);
  ncclComm_t off = split(world, rank == 0 ? NCCL_SPLIT_NOCOLOR : 3, 0);
  if (off != NULL) expectMembers(off, members, list(members, 1, ranks, 1));
  at("split of a split, resources shared: %d", shares);
  ncclComm_t part = split(half, rank < 2 ? 0 : 1, 0), again = split(backwards, 0, rank);
  if (rank >= 2) expectMembers(part, members, list(members, 2 + rank % 2, ranks, 2));
  expectMembers(again, members, list(members, 0, ranks, 1));
  at("a communicator and its split at once, resources shared: %d", shares);
  tryBoth(world, half);
  tryBoth(half, backwards);
  tryBoth(again, part);
  at("the split outlives what it was made of, resources shared: %d", shares);
  MUST(ncclCommDestroy(backwards));
  tryBoth(again, half);
  MUST(ncclCommDestroy(again));
  MUST(ncclCommDestroy(part));
  MUST(ncclCommDestroy(half));
  if (off != NULL) MUST(ncclCommDestroy(off));
}

static void shrinksOfTheLiving(ncclComm_t world) {
  int members[maxRanks];
  at("shrink, resources shared: %d", shares);
  ncclComm_t whole = split(world, 0, 0);
  meet();
  if (rank < ranks - 1) {
    ncclComm_t part = shrink(whole, ranks - 1, NCCL_SHRINK_DEFAULT);
    expectMembers(part, members, list(members, 0, ranks - 1, 1));
    MUST(ncclCommDestroy(part));
  }
  meet();
  expectMembers(whole, members, list(members, 0, ranks, 1)); /* it stays in use */
  MUST(ncclCommDestroy(whole));
  meet();
}

static void shrinkThatEndsOperations(ncclComm_t world) {
  int members[maxRanks];
  at("shrink that ends operations, resources shared: %d", shares);
  ncclComm_t whole = split(world, 0, 0);
  float* const memory = makeMemory(64);
  if (rank < ranks - 1) MUST(ncclAllReduce(memory, memory, 16, ncclFloat32, ncclSum, whole, streams[1]));
  meet();
  if (rank < ranks - 1) {
    ncclComm_t part = shrink(whole, ranks - 1, NCCL_SHRINK_ABORT);
    ended(streams[1]);
    expectMembers(part, members, list(members, 0, ranks - 1, 1));
    MUST(ncclCommDestroy(part));
  } else {
    must("what the rank that is left out was told", told(whole), ncclRemoteError);
  }
  freeMemory(memory);
  MUST(ncclCommDestroy(whole));
  meet();
}

/* The others wait for the last rank in an operation. */
static void shrinkOfTheDead(ncclComm_t world) {
  int members[maxRanks];
  const int last = ranks - 1;
  at("shrink without a rank that was killed, resources shared: %d", shares);
  float* const memory = makeMemory(64);
  if (rank != last) MUST(ncclAllReduce(memory, memory, 16, ncclFloat32, ncclSum, world, streams[1]));
  meet();
  if (rank == last) die();
  if (rank == 0) must("what was told", told(world), ncclRemoteError); /* the others shrink at once */
  ncclComm_t part = shrink(world, last, NCCL_SHRINK_ABORT);
  ended(streams[1]);
  expectMembers(part, members, list(members, 0, last, 1));
  MUST(ncclCommDestroy(world));
  at("split of what was shrunk, resources shared: %d", shares);
  ncclComm_t half = split(part, rank % 2, 0);
  expectMembers(half, members, list(members, rank % 2, last, 2));
  tryBoth(part, half);
  MUST(ncclCommDestroy(half));
  MUST(ncclCommDestroy(part));
  freeMemory(memory);
}

static void body(void) {
  at("joining");
  ncclComm_t world = joinAll();
  for (int i = 0; i < 2; i++) streams[i] = makeStream();
  splits(world);
  shrinksOfTheLiving(world);
  for (int i = 0; i < 20; i++) shrinkThatEndsOperations(world);
  shrinkOfTheDead(world);
  for (int i = 0; i < 2; i++) endStream(streams[i]);
}

int main(int argc, char** argv) {
  const int count = argc == 2 ? atoi(argv[1]) : 0;
  if (count < 2) {
    fprintf(stderr, "usage: teams RANKS   (2 at least)\n");
    return 2;
  }
  int status = 0;
  for (shares = 0; shares < 2 && status == 0; shares++) status = startProcesses(count, 60, body);
  if (status == 0) printf("teams: %d ranks: right\n", count);
  return status;
}
