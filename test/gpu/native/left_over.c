/* A group announces its operations to the other ranks before its end queues them. What its end does not queue leaves
 * nothing behind: the next call of the communicator runs itself, not what was announced before.
 *
 *   left_over RANKS ROUNDS MOST    MOST: largest operation in elements */
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "rank.h"
#include "work.h"

static int rounds;
static size_t max;

static Work workOn(Arena* arena, int round) {
  const size_t count = round % 3 == 0 ? max : max / (size_t)(round % 7 + 1) + 1;
  Work work = {.kind = round % 2 == 0 ? workAllReduce : workAllGather,
               .count = count,
               .seed = (uint32_t)round * 131 + 7,
               .rank = rank,
               .ranks = ranks};
  clearArena(arena);
  HOLDS(place(arena, &work));
  upload(arena);
  return work;
}

static void checked(Arena* arena, const Work* work, cudaStream_t stream) {
  MUST(ended(stream));
  download(arena);
  check(arena, work);
}

/* The group's operation on the first communicator moves nothing, so it is not queued. */
static void afterNothing(const ncclComm_t* comms, Arena* arenas, cudaStream_t stream, int round) {
  Work beside = workOn(&arenas[1], round), alone = workOn(&arenas[0], round + 1);
  at("round %d: a group whose part on one communicator is empty", round);
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(arenas[0].device, arenas[0].device, 0, ncclInt32, ncclSum, comms[0], stream));
  post(&arenas[1], &beside, comms[1], stream);
  MUST(ncclGroupEnd());
  at("round %d: an operation after an empty one", round);
  post(&arenas[0], &alone, comms[0], stream);
  checked(&arenas[1], &beside, stream);
  checked(&arenas[0], &alone, stream);
}

/* The stream of the group's operation on the first communicator takes nothing: its capture has failed. */
static void afterFailure(const ncclComm_t* comms, Arena* arenas, cudaStream_t stream, int round) {
  Work beside = workOn(&arenas[1], round), alone = workOn(&arenas[0], round + 1);
  Work refused = {.kind = workBroadcast, .count = 1, .rank = rank, .ranks = ranks};
  HOLDS(place(&arenas[0], &refused));
  const cudaStream_t broken = makeStream();
  ncclrunGpuGraph_t graph = NULL;
  MUST(ncclrunGpuCaptureBegin(broken));
  REFUSED(ncclrunGpuStreamQuery(broken), ncclUnhandledCudaError); /* which no capture allows */
  at("round %d: a group whose part on one communicator is refused", round);
  MUST(ncclGroupStart());
  post(&arenas[0], &refused, comms[0], broken);
  post(&arenas[1], &beside, comms[1], stream);
  HOLDS(ncclGroupEnd() != ncclSuccess);
  HOLDS(ncclrunGpuCaptureEnd(broken, &graph) != ncclSuccess);
  at("round %d: an operation after a refused one", round);
  post(&arenas[0], &alone, comms[0], stream);
  checked(&arenas[1], &beside, stream);
  checked(&arenas[0], &alone, stream);
  endStream(broken);
}

static void body(void) {
  at("joining");
  ncclComm_t comms[2] = {joinAll(), joinAll()};
  const size_t bytes = (max + 64) * 4 * (size_t)(ranks + 2) + 4096;
  Arena arenas[2] = {makeArena(bytes), makeArena(bytes)};
  const cudaStream_t stream = makeStream();
  for (int round = 0; round < rounds; round++) {
    afterNothing(comms, arenas, stream, 2 * round);
    if (onGpus()) afterFailure(comms, arenas, stream, 2 * round + 1);
  }
  at("leaving");
  for (int i = 0; i < 2; i++) {
    MUST(ncclCommDestroy(comms[i]));
    endArena(&arenas[i]);
  }
  endStream(stream);
}

int main(int argc, char** argv) {
  rounds = argc == 4 ? atoi(argv[2]) : 0;
  max = argc == 4 ? (size_t)atoll(argv[3]) : 0;
  if (rounds < 1 || max < 1 || atoi(argv[1]) < 2) {
    fprintf(stderr, "usage: left_over RANKS ROUNDS MOST   (2 ranks at least)\n");
    return 2;
  }
  const int status = startProcesses(atoi(argv[1]), 60, body);
  if (status == 0) printf("left_over: %s ranks, %d rounds: right\n", argv[1], rounds);
  return status;
}
