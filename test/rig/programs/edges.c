/* A rank that does one all_reduce of floats for each size given, checks the sum, and prints what each of its
 * connections carried for it: bytes=SIZE rank=R channel=C peer=P sends=0|1 transport=T moved=BYTES     (channel -1: the
 * pair connection) Usage: edges BYTES... */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "nccl.h"
#include "ncclrun.h"

enum { kMaxEdges = 256 };

static void must(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "%s: %s: %s\n", what, ncclGetErrorString(result), ncclGetLastError(NULL));
  exit(1);
}

static uint64_t before(const ncclrunEdge* known, size_t count, const ncclrunEdge* edge) {
  for (size_t i = 0; i < count; i++) {
    if (known[i].channel == edge->channel && known[i].peer == edge->peer && known[i].sends == edge->sends)
      return known[i].bytes;
  }
  return 0;
}

static void check(const float* values, size_t count, int size) {
  for (size_t i = 0; i < count; i++) {
    float expected = (float)(size * (size - 1) / 2) + (float)(size * (int)(i % 97));
    if (values[i] == expected) continue;
    fprintf(stderr, "element %zu of %zu: %f instead of %f\n", i, count, values[i], expected);
    exit(1);
  }
}

int main(int argc, char** argv) {
  ncclUniqueId id;
  int size = 0, rank = 0;
  must(ncclrunGetJob(&id, &size, &rank), "ncclrunGetJob");
  ncclComm_t comm;
  must(ncclCommInitRank(&comm, size, id, rank), "ncclCommInitRank");
  ncclrunEdge known[kMaxEdges], now[kMaxEdges];
  size_t known_count = kMaxEdges;
  must(ncclrunCommGetEdges(comm, known, &known_count), "ncclrunCommGetEdges");
  for (int argument = 1; argument < argc; argument++) {
    size_t bytes = strtoull(argv[argument], NULL, 10), count = bytes / sizeof(float);
    float *from = malloc(bytes + 1), *to = malloc(bytes + 1);
    for (size_t i = 0; i < count; i++) from[i] = (float)rank + (float)(i % 97);
    must(ncclAllReduce(from, to, count, ncclFloat, ncclSum, comm, NULL), "ncclAllReduce");
    must(ncclrunStreamSynchronize(NULL), "ncclrunStreamSynchronize");
    check(to, count, size);
    size_t now_count = kMaxEdges;
    /* Both ends of a connection in shared memory have one counter: read while nobody is ahead. */
    must(ncclrunNodeBarrier(comm), "ncclrunNodeBarrier");
    must(ncclrunCommGetEdges(comm, now, &now_count), "ncclrunCommGetEdges");
    must(ncclrunNodeBarrier(comm), "ncclrunNodeBarrier");
    for (size_t i = 0; i < now_count; i++) {
      uint64_t moved = now[i].bytes - before(known, known_count, &now[i]);
      printf("bytes=%zu rank=%d channel=%d peer=%u sends=%u transport=%u moved=%" PRIu64 "\n", bytes, rank,
             (int)now[i].channel, now[i].peer, now[i].sends, now[i].transport, moved);
      known[i] = now[i];
    }
    known_count = now_count;
    free(from);
    free(to);
  }
  must(ncclCommFinalize(comm), "ncclCommFinalize");
  must(ncclCommDestroy(comm), "ncclCommDestroy");
  return 0;
}
