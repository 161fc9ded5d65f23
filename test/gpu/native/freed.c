/* Memory that was freed is free again soon, though copy engines of other ranks have stored into it: they have it
 * mapped. (Ranks are processes; NCCL_ALGO=copyengine has even small operations carried out so.)
 *
 *   freed RANKS BUFFERS BYTES */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"
#include "rank.h"

enum { maxBuffers = 64, seconds = 20 };

static int buffers;
static size_t bytes;

static void gather(ncclComm_t comm, char* memory, cudaStream_t stream) {
  MUST(ncclAllGather(memory + (size_t)rank * bytes, memory, bytes, ncclInt8, comm, stream));
  MUST(ended(stream));
}

/* All ranks come before any goes on: what they see of GPUs' memory is each other's, too. */
static void awaitFree(size_t expected) {
  const double until = now() + seconds;
  while (freeGpuMemory() < expected && now() < until) usleep(1000);
  if (freeGpuMemory() < expected) failed("%zu bytes are not free again", expected - freeGpuMemory());
  meet();
}

static void body(void) {
  at("joining");
  const ncclComm_t comm = joinAll();
  const cudaStream_t stream = makeStream();
  char* const kept = makeMemory(bytes * (size_t)ranks);
  gather(comm, kept, stream);
  gather(comm, kept, stream);
  meet();
  /* What is mapped of `kept` is closed together with what is freed. */
  const size_t before = freeGpuMemory();
  meet();
  for (int round = 0; round < 2; round++) {
    char* memory[maxBuffers];
    for (int i = 0; i < buffers; i++) {
      at("round %d, buffer %d", round, i);
      memory[i] = makeMemory(bytes * (size_t)ranks);
      gather(comm, memory[i], stream);
    }
    meet();
    for (int i = 0; i < buffers; i++) freeMemory(memory[i]);
    at("round %d, all freed", round);
    awaitFree(before);
    gather(comm, kept, stream);
  }
  at("a buffer that is deregistered");
  void* handle = NULL;
  MUST(ncclCommRegister(comm, kept, bytes * (size_t)ranks, &handle));
  gather(comm, kept, stream);
  meet();
  MUST(ncclCommDeregister(comm, handle));
  gather(comm, kept, stream);
  MUST(ncclCommDestroy(comm));
  endStream(stream);
  freeMemory(kept);
}

int main(int argc, char** argv) {
  buffers = argc == 4 ? atoi(argv[2]) : 0;
  bytes = argc == 4 ? (size_t)atoll(argv[3]) : 0;
  if (buffers < 1 || buffers > maxBuffers || bytes < 1) {
    fprintf(stderr, "usage: freed RANKS BUFFERS BYTES   (up to %d buffers)\n", maxBuffers);
    return 2;
  }
  const int status = startProcesses(atoi(argv[1]), 90, body);
  if (status == 0) printf("freed: %s ranks, %d buffers: right\n", argv[1], buffers);
  return status;
}
