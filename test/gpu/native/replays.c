/* The flight recorder of graphs: every replay of a captured operation has an entry, which a kernel wrote.
 *
 *   replays RANKS REPLAYS      The program reads its own recorder, as the agent would. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "rank.h"

enum { captured = 3, stampBits = ncclrunRecordGpuStamp | ncclrunRecordReplay };
static int replays;

typedef struct {
  ncclComm_t comm;
  cudaStream_t stream;
  float* buffer;
} Recipe;

static uint64_t nowNs(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* An all-reduce, a group of two collectives, and a message to the next rank. */
static void doAll(void* argument) {
  const Recipe* recipe = argument;
  MUST(ncclAllReduce(recipe->buffer, recipe->buffer, 2, ncclFloat32, ncclSum, recipe->comm, recipe->stream));
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(recipe->buffer, recipe->buffer, 1024, ncclFloat32, ncclMax, recipe->comm, recipe->stream));
  MUST(ncclAllReduce(recipe->buffer + 1024, recipe->buffer + 1024, 512, ncclFloat32, ncclMax, recipe->comm,
                     recipe->stream));
  MUST(ncclGroupEnd());
}
static void passOn(void* argument) {
  const Recipe* recipe = argument;
  MUST(ncclGroupStart());
  MUST(ncclSend(recipe->buffer, 16, ncclFloat32, (rank + 1) % ranks, recipe->comm, recipe->stream));
  MUST(ncclRecv(recipe->buffer + 2048, 16, ncclFloat32, (rank + ranks - 1) % ranks, recipe->comm, recipe->stream));
  MUST(ncclGroupEnd());
}
static void doBoth(void* argument) {
  doAll(argument);
  passOn(argument);
}

/* This process's recorder: the memory that the agent gave it, found among its mappings by name. */
static const ncclrunRecorder* findRecorder(void) {
  char line[512];
  FILE* maps = fopen("/proc/self/maps", "r");
  HOLDS(maps != NULL);
  const ncclrunRecorder* found = NULL;
  while (found == NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long from = 0, end = 0;
    if (strstr(line, "ncclrun-recorder") == NULL || sscanf(line, "%lx-%lx", &from, &end) != 2) continue;
    if (end - from >= NCCLRUN_RECORDER_BYTES) found = (const ncclrunRecorder*)from; /* NOLINT: an address */
  }
  fclose(maps);
  return found;
}

/* CLOCK_MONOTONIC of a stamp, which is of the first operation that had its entry. */
static uint64_t hostTime(const ncclrunRecorder* recorder, uint64_t stamp) {
  const uint64_t mask = ((uint64_t)1 << 48) - 1, latest = nowNs() - recorder->clocks[0].lastOffset + 1000000000u;
  SAME(stamp >> 48, 0);
  return latest - ((latest - stamp) & mask) + recorder->clocks[0].lastOffset;
}

static void checkEntry(const ncclrunRecorder* recorder, const ncclrunRecorderEntry* entry, uint64_t from,
                       uint64_t until) {
  const uint64_t slack = recorder->clocks[0].lastErrorNs + 1000000;
  SAME(entry->flags & stampBits, stampBits);
  HOLDS(entry->endedNs != 0 && entry->startedNs <= entry->endedNs);
  HOLDS(hostTime(recorder, entry->startedNs) + slack >= from);
  HOLDS(hostTime(recorder, entry->endedNs) <= until + slack);
}

static void body(void) {
  ncclComm_t comm = joinAll();
  const cudaStream_t stream = makeStream();
  Recipe recipe = {comm, stream, makeMemory(16384)};
  const ncclrunRecorder* recorder = findRecorder();
  HOLDS(recorder != NULL);
  at("calls");
  const uint64_t began = nowNs();
  doBoth(&recipe);
  MUST(ended(stream));
  const uint64_t between = nowNs();
  if (!onGpus()) return; /* graphs of the host device make their calls again */
  HOLDS(recorder->clocks[0].sequence != 0);
  const int calls = captured + 2;
  for (int i = 0; i < calls; i++) {
    at("call %d", i);
    const ncclrunRecorderEntry* entry = &recorder->entries[i];
    SAME(entry->sequence, i + 1);
    SAME(entry->flags & ncclrunRecordReplay, 0);
    HOLDS((entry->flags & ncclrunRecordGpuStamp) != 0 && entry->endedNs >= entry->startedNs && entry->startedNs != 0);
    const uint64_t slack = recorder->clocks[0].lastErrorNs + 1000000;
    HOLDS(hostTime(recorder, entry->startedNs) + slack >= entry->enqueuedNs && entry->enqueuedNs >= began);
    HOLDS(hostTime(recorder, entry->endedNs) <= between + slack);
  }
  Graph* graph = capture(stream, doBoth, &recipe);
  meet();
  const uint64_t from = nowNs();
  for (int i = 0; i < replays; i++) launch(graph, stream);
  MUST(ended(stream));
  const uint64_t until = nowNs();
  const int all = replays * calls;
  int collectives[captured] = {0}, sent = 0, received = 0;
  for (int i = 0; i < all; i++) {
    at("entry %d of %d replays", i, replays);
    const ncclrunRecorderEntry* entry = &recorder->replays[0][i];
    SAME(entry->sequence, i + 1);
    checkEntry(recorder, entry, from, until);
    if (entry->collective == 8) {
      int* count = (entry->flags & ncclrunRecordSend) != 0 ? &sent : &received;
      SAME(entry->operation, ++*count);
      SAME(entry->count, 16);
    } else {
      /* The first of its launch is counted twice in a replay, the second one of the group once. */
      HOLDS(entry->stream < captured);
      SAME(entry->operation, ++collectives[entry->stream]);
    }
  }
  SAME(sent, replays);
  SAME(received, replays);
  SAME(collectives[0] + collectives[1], replays * captured);
  endGraph(graph);
  freeMemory(recipe.buffer);
  endStream(stream);
  MUST(ncclCommDestroy(comm));
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int count = atoi(argv[1]);
  replays = atoi(argv[2]);
  if (replays < 1 || replays * (captured + 2) > NCCLRUN_RECORDER_ENTRIES) return 2;
  const int status = startProcesses(count, 120, body);
  if (status == 0) printf("replays: %d ranks, %d replays: recorded\n", count, replays);
  return status;
}
