/* Very many small operations of all kinds, by themselves and in groups. What each has done is counted or looked at
 * again and again, and neither the process nor the GPU may use more memory at the end than after a tenth.
 *
 *   many RANKS OPERATIONS GROUP    GROUP: operations in each group; 1: none is grouped */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "counter.h"
#include "device.h"
#include "rank.h"
#include "work.h"

enum { kinds = 16, counters = 4, looks = 20, maxElements = 64 };
enum { hostSlack = 1 << 20, gpuSlack = 8 << 20 }; /* the driver keeps lists of its own */

static int operations, grouped;

static size_t residentBytes(void) {
  long pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  HOLDS(file != NULL && fscanf(file, "%ld %ld", &pages, &resident) == 2);
  fclose(file);
  return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

typedef struct {
  size_t resident, unused;
} Memory;

static Memory say(const char* when) {
  const Memory memory = {residentBytes(), freeGpuMemory()};
  if (rank == 0) {
    printf("many, groups of %d: %s: %zu KiB resident, %zu KiB of the GPU free\n", grouped, when, memory.resident >> 10,
           memory.unused >> 10);
  }
  return memory;
}

static void notMore(Memory early, Memory late) {
  const size_t slack = onGpus() ? gpuSlack : hostSlack;
  if (late.resident > early.resident + slack) {
    failed("%zu KiB resident, expected no more than the %zu of the first tenth", late.resident >> 10,
           early.resident >> 10);
  }
  if (late.unused + slack < early.unused) {
    failed("%zu KiB of the GPU free, expected no less than the %zu of the first tenth", late.unused >> 10,
           early.unused >> 10);
  }
}

typedef struct {
  ncclComm_t comm;
  cudaStream_t stream;
  Arena arena;
  Work works[kinds];
  Counter counters[counters];
  uint64_t counted[counters];
} State;

static void prepare(State* state, uint64_t seed) {
  clearArena(&state->arena);
  for (int i = counters; i < kinds; i++) {
    state->works[i] = drawWork(&seed, maxElements, rank, ranks);
    state->works[i].kind = (WorkKind)(i % workKinds);
    HOLDS(place(&state->arena, &state->works[i]));
  }
  upload(&state->arena);
}

static void callOne(State* state, int which) {
  if (which < counters) {
    increase(&state->counters[which], state->comm, state->stream);
    state->counted[which]++;
  } else {
    post(&state->arena, &state->works[which], state->comm, state->stream);
  }
}

static void lookAtAll(State* state) {
  MUST(ended(state->stream));
  for (int i = 0; i < counters; i++) checkCounter(&state->counters[i], state->counted[i], state->stream);
  download(&state->arena);
  for (int i = counters; i < kinds; i++) check(&state->arena, &state->works[i]);
}

static void body(void) {
  State state = {.comm = joinAll(), .stream = makeStream(), .arena = makeArena(1 << 20)};
  for (int i = 0; i < counters; i++) state.counters[i] = makeCounter((size_t)2 << 2 * i % 6, (uint32_t)i);
  say("start");
  Memory early = {0, 0};
  for (int look = 0, done = 0; look < looks; look++) {
    at("operations from %d on", done);
    prepare(&state, (uint64_t)look);
    for (const int until = operations / looks * (look + 1); done < until || done % kinds != 0; done++) {
      if (grouped > 1 && done % grouped == 0) MUST(ncclGroupStart());
      callOne(&state, done % kinds);
      if (grouped > 1 && done % grouped == grouped - 1) MUST(ncclGroupEnd());
    }
    lookAtAll(&state);
    if (look == looks / 10 - 1) early = say("after a tenth");
    if (look == looks / 2) notMore(early, say("middle"));
  }
  notMore(early, say("end"));
  MUST(ncclCommDestroy(state.comm));
  for (int i = 0; i < counters; i++) endCounter(&state.counters[i]);
  endStream(state.stream);
  endArena(&state.arena);
}

int main(int argc, char** argv) {
  operations = argc == 4 ? atoi(argv[2]) : 0;
  grouped = argc == 4 ? atoi(argv[3]) : 0;
  if (operations < looks || (grouped != 1 && grouped != 2 && grouped != 4 && grouped != 8 && grouped != 16)) {
    fprintf(stderr, "usage: many RANKS OPERATIONS 1|2|4|8|16   (20 operations at least)\n");
    return 2;
  }
  const int count = atoi(argv[1]);
  const int status = startProcesses(count, 280, body);
  if (status == 0) printf("many: %d ranks, %d operations in groups of %d: right\n", count, operations, grouped);
  return status;
}
