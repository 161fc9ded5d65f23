/* Any number of communicators has a slot of the telemetry pages, and one that is aborted while its kernel waits gives
 * it back. In a process with many of them, ranks whose calls differ are told so by the last one, too.
 *
 *   slots RANKS COMMUNICATORS ABORTS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "rank.h"

enum { maxComms = 512, maxPages = 64, seconds = 30 };

static int commCount, aborts;

/* The engine's own mappings. */
static int pagesHere(const ncclrunTelemetryPage** pages) {
  FILE* maps = fopen("/proc/self/maps", "r");
  HOLDS(maps != NULL);
  char line[512];
  int found = 0;
  while (found < maxPages && fgets(line, sizeof line, maps) != NULL) {
    uintptr_t first = 0, end = 0;
    if (strstr(line, "ncclrun-telemetry") == NULL || sscanf(line, "%lx-%lx", &first, &end) != 2) continue;
    for (; first < end; first += NCCLRUN_TELEMETRY_BYTES) pages[found++] = (const ncclrunTelemetryPage*)first;
  }
  fclose(maps);
  return found;
}

/* Slots that are not free, those that were left too; `waiting`: whose rank waits. */
static int taken(int* waiting) {
  const ncclrunTelemetryPage* pages[maxPages];
  const int pageCount = pagesHere(pages);
  int all = 0;
  *waiting = 0;
  for (int i = 0; i < pageCount * NCCLRUN_TELEMETRY_SLOTS; i++) {
    const ncclrunTelemetrySlot* slot = &pages[i / NCCLRUN_TELEMETRY_SLOTS]->slots[i % NCCLRUN_TELEMETRY_SLOTS];
    const uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED);
    all += state != ncclrunStateFree;
    *waiting += state == ncclrunStateWaiting;
  }
  return all;
}

/* A communicator's memory, and with it its slot, is given back behind its last kernel. */
static void awaitTaken(int expected) {
  int waiting = 0;
  const double until = now() + seconds;
  while (taken(&waiting) != expected && now() < until) usleep(1000);
  SAME(taken(&waiting), expected);
}

static void tryMany(cudaStream_t stream, int* memory) {
  static ncclComm_t comms[maxComms];
  for (int i = 0; i < commCount; i++) {
    at("joining communicator %d", i);
    comms[i] = joinAll();
  }
  awaitTaken(commCount);
  for (int i = 0; i < commCount; i++) {
    at("all_reduce on communicator %d", i);
    MUST(ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comms[i], stream));
  }
  MUST(ended(stream));
  meet();
  at("different calls on the last communicator");
  const ncclComm_t last = comms[commCount - 1];
  ncclResult_t result = rank == 0 ? ncclAllReduce(memory, memory, 1000, ncclInt32, ncclSum, last, stream) : ncclSuccess;
  MUST(result);
  if (rank != 0) usleep(500000); /* rank 0 waits in it by then */
  if (rank != 0) result = ncclAllGather(memory, memory, 10, ncclInt32, last, stream);
  SAME(result == ncclSuccess ? told(last) : result, ncclInvalidUsage);
  meet();
  for (int i = 0; i < commCount; i++) {
    at("leaving communicator %d", i);
    MUST(ncclCommDestroy(comms[i]));
  }
  ended(stream);
  at("after all were left");
  awaitTaken(0);
}

static void tryAbort(int* memory, int number) {
  at("abort %d", number);
  const ncclComm_t comm = joinAll();
  const cudaStream_t stream = makeStream();
  if (rank == 0) MUST(ncclAllReduce(memory, memory, 4096, ncclInt32, ncclSum, comm, stream));
  int waiting = 0;
  while (rank == 0 && waiting == 0) taken(&waiting);
  meet();
  MUST(ncclCommAbort(comm));
  endStream(stream);
}

static void body(void) {
  int* const memory = makeMemory(1 << 16);
  const cudaStream_t stream = makeStream();
  tryMany(stream, memory);
  for (int i = 0; i < aborts; i++) tryAbort(memory, i);
  at("after all were aborted");
  awaitTaken(0);
  endStream(stream);
  freeMemory(memory);
}

int main(int argc, char** argv) {
  commCount = argc == 4 ? atoi(argv[2]) : 0;
  aborts = argc == 4 ? atoi(argv[3]) : 0;
  if (commCount < 1 || commCount > maxComms || commCount + aborts > maxIds || atoi(argv[1]) < 2) {
    fprintf(stderr, "usage: slots RANKS COMMUNICATORS ABORTS   (2 ranks at least, up to %d communicators)\n", maxComms);
    return 2;
  }
  const int status = startProcesses(atoi(argv[1]), 200, body);
  if (status == 0) printf("slots: %s ranks, %d communicators, %d aborts: right\n", argv[1], commCount, aborts);
  return status;
}
