/* Communicators of the same ranks, each on a stream of its own, called in opposite orders by even and odd ranks, at
 * random moments and with operations of very unlike sizes: each rank's GPU has room for something of all of them.
 *
 *   opposite RANKS COMMUNICATORS ROUNDS BYTES [SECONDS]    BYTES: of an operation's buffers, at most; SECONDS: limit */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"
#include "rank.h"
#include "work.h"

enum { maxCommunicators = 64, worksOfRound = 3, repeats = 4, alignmentOfBuffers = 1024 };

static int communicators, rounds;
static size_t bytes;

typedef struct {
  ncclComm_t comm;
  cudaStream_t stream;
  Arena arena;
  Work works[worksOfRound];
} Team;
static Team teams[maxCommunicators];

static void prepare(Team* team, int round, uint64_t seed) {
  const size_t max = bytes / sizeof(int32_t) / (size_t)ranks;
  clearArena(&team->arena);
  for (int i = 0; i < worksOfRound; i++) {
    team->works[i] = drawWork(&seed, max, rank, ranks);
    if (round % 2 == 0) team->works[i].count = max - draw(&seed) % 64; /* all of them want many blocks */
    HOLDS(place(&team->arena, &team->works[i]));
  }
  upload(&team->arena);
}

static void callAll(Team* team) {
  for (int i = 0; i < worksOfRound; i++) {
    for (int repeat = 0; repeat < repeats; repeat++) post(&team->arena, &team->works[i], team->comm, team->stream);
  }
}

static void body(void) {
  uint64_t own = 77 + (uint64_t)rank;
  for (int i = 0; i < communicators; i++) {
    teams[i].comm = joinAll();
    teams[i].stream = makeStream();
    teams[i].arena = makeArena(worksOfRound * 2 * (bytes + alignmentOfBuffers));
  }
  for (int round = 0; round < rounds; round++) {
    at("round %d", round);
    for (int i = 0; i < communicators; i++) prepare(&teams[i], round, (uint64_t)(round * communicators + i));
    meet();
    for (int turn = 0; turn < communicators; turn++) {
      const int i = rank % 2 == 0 ? turn : communicators - 1 - turn;
      at("round %d, communicator %d", round, i);
      callAll(&teams[i]);
      if (draw(&own) % 8 == 0) usleep(draw(&own) % 3000);
    }
    for (int i = 0; i < communicators; i++) {
      at("round %d, the end of communicator %d", round, i);
      MUST(ended(teams[i].stream));
      download(&teams[i].arena);
      for (int one = 0; one < worksOfRound; one++) check(&teams[i].arena, &teams[i].works[one]);
    }
  }
  for (int i = 0; i < communicators; i++) {
    MUST(ncclCommDestroy(teams[i].comm));
    endStream(teams[i].stream);
    endArena(&teams[i].arena);
  }
}

int main(int argc, char** argv) {
  const int count = argc > 4 ? atoi(argv[1]) : 0;
  communicators = argc > 4 ? atoi(argv[2]) : 0;
  rounds = argc > 4 ? atoi(argv[3]) : 0;
  bytes = argc > 4 ? (size_t)atoll(argv[4]) : 0;
  const int seconds = argc > 5 ? atoi(argv[5]) : 120;
  if (communicators < 1 || communicators > maxCommunicators || rounds < 1 || bytes < 1024 || seconds < 1) {
    fprintf(stderr,
            "usage: opposite RANKS COMMUNICATORS ROUNDS BYTES [SECONDS]   (64 communicators, 1 KiB at least)\n");
    return 2;
  }
  const int status = startProcesses(count, (unsigned)seconds, body);
  if (status == 0) printf("opposite: %d ranks, %d communicators, %d rounds: right\n", count, communicators, rounds);
  return status;
}
