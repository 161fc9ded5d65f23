/* What communicators take of a GPU's memory: as much as they say, no more than they may, and nothing when they have
 * ended. The first and the last of them carry every operation.
 *
 *   memory RANKS COMMUNICATORS */
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "rank.h"
#include "work.h"

/* Of a newer version than nccl.h. */
ncclResult_t ncclCommMemStats(ncclComm_t comm, int stat, uint64_t* value);

enum { maxCommunicators = 64, maxElements = 300000, total = 3 };
static const uint64_t maxBytesOfOne = 100000000, maxBytesOf64 = 2000000000;
/* What the driver keeps for itself; and of each communicator, the rest of the two pages of 2 MiB where its memory ends.
 */
static const uint64_t slack = 64 << 20, slackOfOne = 4 << 20;
static int count;

static uint64_t bytesOf(ncclComm_t comm) {
  uint64_t bytes = 0;
  MUST(ncclCommMemStats(comm, total, &bytes));
  return bytes;
}

static void body(void) {
  ncclComm_t comms[maxCommunicators];
  const cudaStream_t stream = makeStream();
  uint64_t sum = 0;
  at("the first communicator");
  comms[0] = joinAll();
  tryOut(comms[0], stream, maxElements, 1);
  const size_t before = freeGpuMemory();
  for (int i = 1; i < count; i++) {
    at("communicator %d", i);
    MUST(ncclCommSplit(comms[0], 0, rank, &comms[i], NULL));
  }
  const size_t after = freeGpuMemory();
  for (int i = 0; i < count; i++) {
    at("the memory of communicator %d", i);
    const uint64_t bytes = bytesOf(comms[i]);
    HOLDS(onGpus() ? bytes > 0 : bytes == 0);
    HOLDS(ranks > 4 || bytes < maxBytesOfOne);
    HOLDS(bytes <= bytesOf(comms[0]));
    sum += bytes;
  }
  at("the memory of all");
  HOLDS(ranks > 4 || sum < maxBytesOf64);
  const uint64_t taken = (before > after ? before - after : 0) / (uint64_t)ranksOfGpu();
  const uint64_t said = sum - bytesOf(comms[0]);
  if (taken > said + slack + (uint64_t)count * slackOfOne)
    failed("%.1f MB of the GPU are gone for each rank, the communicators say %.1f", (double)taken / 1e6,
           (double)said / 1e6);
  HOLDS(ranks > 4 || taken + bytesOf(comms[0]) < maxBytesOf64);
  at("the last communicator");
  tryOut(comms[count - 1], stream, maxElements, 2);
  at("the end");
  for (int i = 0; i < count; i++) MUST(ncclCommDestroy(comms[i]));
  endStream(stream);
  if (rank == 0)
    printf("memory: %.1f MB for each rank, %.1f with what the driver adds\n", (double)sum / 1e6,
           (double)(taken + sum - said) / 1e6);
}

int main(int argc, char** argv) {
  count = argc == 3 ? atoi(argv[2]) : 0;
  if (count < 1 || count > maxCommunicators) {
    fprintf(stderr, "usage: memory RANKS COMMUNICATORS   (up to %d)\n", maxCommunicators);
    return 2;
  }
  const int status = startProcesses(atoi(argv[1]), 280, body);
  if (status == 0) printf("memory: %d ranks, %d communicators: right\n", ranks, count);
  return status;
}
