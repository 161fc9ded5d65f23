/* A rank that does one all_reduce of floats for each size given, checks the sum, and prints what each of its
 * connections carried for it: bytes=SIZE rank=R channel=C peer=P sends=0|1 transport=T moved=BYTES     (channel -1: the
 * pair connection) Usage: edges BYTES... */
#include <inttypes.h>

#include "must.h"

enum { kMaxEdges = 256 };

static uint64_t before(const ncclrunEdge* known, size_t count, const ncclrunEdge* edge) {
  for (size_t i = 0; i < count; i++) {
    if (known[i].channel == edge->channel && known[i].peer == edge->peer && known[i].sends == edge->sends)
      return known[i].bytes;
  }
  return 0;
}

static void check(const float* values, size_t count, int size) {
  for (size_t i = 0; i < count; i++) CHECK(values[i] == (float)(size * (size - 1) / 2) + (float)(size * (int)(i % 97)));
}

int main(int argc, char** argv) {
  const Job job = joinJob();
  const ncclComm_t comm = job.comm;
  ncclrunEdge known[kMaxEdges], now[kMaxEdges];
  size_t known_count = kMaxEdges;
  MUST(ncclrunCommGetEdges(comm, known, &known_count));
  for (int argument = 1; argument < argc; argument++) {
    size_t bytes = strtoull(argv[argument], NULL, 10), count = bytes / sizeof(float);
    float *from = malloc(bytes + 1), *to = malloc(bytes + 1);
    for (size_t i = 0; i < count; i++) from[i] = (float)job.rank + (float)(i % 97);
    MUST(ncclAllReduce(from, to, count, ncclFloat, ncclSum, comm, NULL));
    MUST(ncclrunStreamSynchronize(NULL));
    check(to, count, job.size);
    size_t now_count = kMaxEdges;
    /* Both ends of a connection in shared memory have one counter: read while nobody is ahead. */
    MUST(ncclrunNodeBarrier(comm));
    MUST(ncclrunCommGetEdges(comm, now, &now_count));
    MUST(ncclrunNodeBarrier(comm));
    for (size_t i = 0; i < now_count; i++) {
      uint64_t moved = now[i].bytes - before(known, known_count, &now[i]);
      printf("bytes=%zu rank=%d channel=%d peer=%u sends=%u transport=%u moved=%" PRIu64 "\n", bytes, job.rank,
             (int)now[i].channel, now[i].peer, now[i].sends, now[i].transport, moved);
      known[i] = now[i];
    }
    known_count = now_count;
    free(from);
    free(to);
  }
  MUST(ncclCommFinalize(comm));
  MUST(ncclCommDestroy(comm));
  return 0;
}
