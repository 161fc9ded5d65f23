/* Operations whose results can be told exactly. Each number says what it is: of which rank, at which place, of which
 * operation. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "ncclrun.h"

typedef enum {
  workAllReduce,
  workAllGather,
  workReduceScatter,
  workBroadcast,
  workReduce,
  workAllToAll,
  workGather,
  workScatter,
  workExchange, /* as allToAll, by sends and receives in a group */
  workShift,    /* to the next rank, from the one before */
  workPass,     /* from the root to the next rank */
  workKinds
} WorkKind;

/* Device memory, with a copy on the host. */
typedef struct {
  char* device;
  char* host;
  size_t size, used;
  cudaStream_t stream; /* for copies */
} Arena;
Arena makeArena(size_t bytes);
void endArena(Arena* arena);
void clearArena(Arena* arena);
/* Between the copy on the host and the device, waiting. */
void upload(Arena* arena);
void download(Arena* arena);

/* One operation of int32. Its buffers lie in an arena. */
typedef struct {
  WorkKind kind;
  size_t count; /* elements, as in the call */
  int root;
  uint32_t seed;
  int rank, ranks; /* in the communicator */
  size_t sendAt, receiveAt;
} Work;
/* Gives the work buffers and numbers; 0 if the arena has no room. */
int place(Arena* arena, Work* work);
/* Calls the operation, which must succeed (or, on a non-blocking communicator, be in progress until it has). */
void post(const Arena* arena, const Work* work, ncclComm_t comm, cudaStream_t stream);
/* After download(). */
void check(const Arena* arena, const Work* work);

/* The same numbers at all ranks that begin with the same state. */
uint32_t draw(uint64_t* state);
/* One to `most` elements; each power of two as often as the others. */
size_t drawCount(uint64_t* state, size_t max);
/* A work of any kind, with `rank` and `ranks` of the communicator. */
Work drawWork(uint64_t* state, size_t maxCount, int rank, int ranks);

/* Each kind with random counts up to `most` elements, one after the other on the stream, and checks all. */
void tryOut(ncclComm_t comm, cudaStream_t stream, size_t max, uint64_t seed);
