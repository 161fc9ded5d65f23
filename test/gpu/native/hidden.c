/* All operations of all sizes between processes of which each sees its own GPU alone, whose memory the driver may map
 * into the others all the same; or, with NCCL_P2P_DISABLE=1 in the environment, all: then through memory of the host.
 *
 *   hidden RANKS alone|all MOST    MOST: largest buffer in bytes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "rank.h"
#include "work.h"

enum { hostMemory = 0 /* native/plan/plan_format.h, Transport::shm */ };

static size_t maxBytes;

static void expectHostMemory(ncclComm_t comm) {
  ncclrunEdge edges[256];
  size_t count = sizeof edges / sizeof *edges;
  MUST(ncclrunCommGetEdges(comm, edges, &count));
  HOLDS(count > 0);
  for (size_t i = 0; i < count && i < sizeof edges / sizeof *edges; i++) {
    if (edges[i].transport == hostMemory) continue;
    failed("%llu bytes went between ranks %d and %u by transport %u, expected %d (memory of the host)",
           (unsigned long long)edges[i].bytes, rank, edges[i].peer, edges[i].transport, hostMemory);
  }
}

static void body(void) {
  at("joining");
  ncclComm_t comm = joinAll();
  const cudaStream_t stream = makeStream();
  Arena arena = makeArena(2 * maxBytes + ((size_t)1 << 20));
  uint64_t seed = 60;
  for (size_t bytes = 4; bytes <= maxBytes; bytes *= 2) {
    for (int kind = 0; kind < workKinds; kind++) {
      Work work = drawWork(&seed, 1, rank, ranks);
      work.kind = (WorkKind)kind;
      work.count = bytes / 4;
      if (kind != workAllReduce && kind != workBroadcast && kind != workReduce && kind != workShift)
        work.count = (work.count + (size_t)ranks - 1) / (size_t)ranks;
      at("kind %d of %zu bytes", kind, bytes);
      clearArena(&arena);
      HOLDS(place(&arena, &work));
      upload(&arena);
      post(&arena, &work, comm, stream);
      MUST(ended(stream));
      download(&arena);
      check(&arena, &work);
    }
  }
  at("looking at the connections");
  if (getenv("NCCL_P2P_DISABLE") != NULL) expectHostMemory(comm);
  MUST(ncclCommDestroy(comm));
  endStream(stream);
  endArena(&arena);
}

int main(int argc, char** argv) {
  const int count = argc == 4 ? atoi(argv[1]) : 0;
  maxBytes = argc == 4 ? (size_t)atoll(argv[3]) : 0;
  if (count < 2 || maxBytes < 4) {
    fprintf(stderr, "usage: hidden RANKS alone|all MOST   (2 ranks at least)\n");
    return 2;
  }
  eachSeesItsGpuAlone = strcmp(argv[2], "alone") == 0;
  const int status = startProcesses(count, 170, body);
  if (status == 0) printf("hidden: %d ranks, up to %zu bytes through memory of the host: right\n", count, maxBytes);
  return status;
}
