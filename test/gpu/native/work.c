#include "work.h"

#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "rank.h"

static const char* const names[workKinds] = {"allReduce", "allGather", "reduceScatter", "broadcast",
                                             "reduce",    "allToAll",  "gather",        "scatter",
                                             "exchange",  "shift",     "pass"};
enum { junk = -77777777, alignment = 256 };

Arena makeArena(size_t bytes) {
  Arena arena = {makeMemory(bytes), malloc(bytes), bytes, 0, makeStream()};
  if (arena.host == NULL) failed("no memory");
  return arena;
}

void endArena(Arena* arena) {
  endStream(arena->stream);
  freeMemory(arena->device);
  free(arena->host);
}

void clearArena(Arena* arena) { arena->used = 0; }

void upload(Arena* arena) {
  copy(arena->device, arena->host, arena->used, arena->stream);
  MUST(ended(arena->stream));
}

void download(Arena* arena) {
  copy(arena->host, arena->device, arena->used, arena->stream);
  MUST(ended(arena->stream));
}

static int32_t value(uint32_t seed, int from, size_t i) {
  const uint32_t mixed = (seed * 2654435761u ^ (uint32_t)(from + 1) * 0x9E3779B9u) + (uint32_t)i * 0x85EBCA6Bu;
  return (int32_t)(mixed ^ mixed >> 15) >> 12;
}

static int32_t total(const Work* work, size_t i) {
  int32_t sum = 0;
  for (int from = 0; from < work->ranks; from++) sum += value(work->seed, from, i);
  return sum;
}

static int next(const Work* work) { return (work->rank + 1) % work->ranks; }
static int previous(const Work* work) { return (work->rank + work->ranks - 1) % work->ranks; }

static int sendParts(WorkKind kind, int all) {
  return kind == workReduceScatter || kind == workAllToAll || kind == workScatter || kind == workExchange ? all : 1;
}

static int receiveParts(WorkKind kind, int all) {
  return kind == workAllGather || kind == workAllToAll || kind == workGather || kind == workExchange ? all : 1;
}

static int32_t* room(Arena* arena, size_t elements, uint32_t seed, size_t* at) {
  *at = arena->used + seed % 4 * sizeof(int32_t); /* not always where whole vectors begin */
  arena->used = (*at + elements * sizeof(int32_t) + alignment - 1) / alignment * alignment;
  return arena->used <= arena->size ? (int32_t*)(arena->host + *at) : NULL;
}

int place(Arena* arena, Work* work) {
  const size_t before = arena->used;
  const size_t sends = work->count * (size_t)sendParts(work->kind, work->ranks);
  const size_t receives = work->count * (size_t)receiveParts(work->kind, work->ranks);
  int32_t* const send = room(arena, sends, work->seed, &work->sendAt);
  int32_t* const receive = room(arena, receives, work->seed / 4, &work->receiveAt);
  if (send == NULL || receive == NULL) {
    arena->used = before;
    return 0;
  }
  for (size_t i = 0; i < sends; i++) send[i] = value(work->seed, work->rank, i);
  for (size_t i = 0; i < receives; i++) receive[i] = junk;
  return 1;
}

static ncclResult_t postMessages(const Work* work, int32_t* send, int32_t* receive, ncclComm_t comm,
                                 cudaStream_t stream) {
  const size_t count = work->count;
  MUST(ncclGroupStart());
  if (work->kind == workShift) {
    MUST(ncclRecv(receive, count, ncclInt32, previous(work), comm, stream));
    MUST(ncclSend(send, count, ncclInt32, next(work), comm, stream));
  }
  if (work->kind == workPass) {
    if (work->rank == work->root) MUST(ncclSend(send, count, ncclInt32, next(work), comm, stream));
    if (previous(work) == work->root) MUST(ncclRecv(receive, count, ncclInt32, work->root, comm, stream));
  }
  for (int i = 0; work->kind == workExchange && i < work->ranks; i++) {
    const int peer = (i + work->rank) % work->ranks;
    MUST(ncclSend(send + (size_t)peer * count, count, ncclInt32, peer, comm, stream));
    MUST(ncclRecv(receive + (size_t)peer * count, count, ncclInt32, peer, comm, stream));
  }
  return ncclGroupEnd();
}

static ncclResult_t call(const Work* work, int32_t* send, int32_t* receive, ncclComm_t comm, cudaStream_t stream) {
  const size_t count = work->count;
  const int root = work->root;
  switch (work->kind) {
    case workAllReduce:
      return ncclAllReduce(send, receive, count, ncclInt32, ncclSum, comm, stream);
    case workAllGather:
      return ncclAllGather(send, receive, count, ncclInt32, comm, stream);
    case workReduceScatter:
      return ncclReduceScatter(send, receive, count, ncclInt32, ncclSum, comm, stream);
    case workBroadcast:
      return ncclBroadcast(send, receive, count, ncclInt32, root, comm, stream);
    case workReduce:
      return ncclReduce(send, receive, count, ncclInt32, ncclSum, root, comm, stream);
    case workAllToAll:
      return ncclAlltoAll(send, receive, count, ncclInt32, comm, stream);
    case workGather:
      return ncclGather(send, receive, count, ncclInt32, root, comm, stream);
    case workScatter:
      return ncclScatter(send, receive, count, ncclInt32, root, comm, stream);
    case workExchange:
    case workShift:
    case workPass:
    case workKinds:
      break;
  }
  return postMessages(work, send, receive, comm, stream);
}

void post(const Arena* arena, const Work* work, ncclComm_t comm, cudaStream_t stream) {
  int32_t* const send = (int32_t*)(arena->device + work->sendAt);
  int32_t* const receive = (int32_t*)(arena->device + work->receiveAt);
  ncclResult_t result = call(work, send, receive, comm, stream);
  if (result == ncclInProgress) result = settled(comm);
  must(names[work->kind], result, ncclSuccess);
}

static int32_t expected(const Work* work, size_t i) {
  const int part = (int)(i / work->count);
  const size_t mine = (size_t)work->rank * work->count + i % work->count;
  const int isRoot = work->rank == work->root;
  switch (work->kind) {
    case workAllReduce:
      return total(work, i);
    case workAllGather:
      return value(work->seed, part, i % work->count);
    case workReduceScatter:
      return total(work, mine);
    case workBroadcast:
      return value(work->seed, work->root, i);
    case workReduce:
      return isRoot ? total(work, i) : junk;
    case workGather:
      return isRoot ? value(work->seed, part, i % work->count) : junk;
    case workScatter:
      return value(work->seed, work->root, mine);
    case workShift:
      return value(work->seed, previous(work), i);
    case workPass:
      return previous(work) == work->root ? value(work->seed, work->root, i) : junk;
    case workAllToAll:
    case workExchange:
    case workKinds:
      break;
  }
  return value(work->seed, part, mine);
}

void check(const Arena* arena, const Work* work) {
  const int32_t* const send = (const int32_t*)(arena->host + work->sendAt);
  const int32_t* const receive = (const int32_t*)(arena->host + work->receiveAt);
  const size_t receives = work->count * (size_t)receiveParts(work->kind, work->ranks);
  for (size_t i = 0; i < receives; i++) {
    if (receive[i] == expected(work, i)) continue;
    failed("%s of %zu elements, rank %d of %d, root %d: element %zu is %d, expected %d", names[work->kind], work->count,
           work->rank, work->ranks, work->root, i, receive[i], expected(work, i));
  }
  const size_t sends = work->count * (size_t)sendParts(work->kind, work->ranks);
  for (size_t i = 0; i < sends; i++) {
    if (send[i] == value(work->seed, work->rank, i)) continue;
    failed("%s of %zu elements: the send buffer was written to at element %zu", names[work->kind], work->count, i);
  }
}

uint32_t draw(uint64_t* state) {
  *state += 0x9E3779B97F4A7C15u;
  uint64_t mixed = *state;
  mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
  return (uint32_t)(mixed >> 32);
}

size_t drawCount(uint64_t* state, size_t max) {
  unsigned bits = 0;
  while (max >> bits > 1) bits++;
  const size_t below = max >> draw(state) % (bits + 1);
  return below / 2 + draw(state) % (below - below / 2) + 1;
}

Work drawWork(uint64_t* state, size_t maxCount, int ownRank, int all) {
  Work work = {.rank = ownRank, .ranks = all};
  work.kind = draw(state) % workKinds;
  work.root = (int)(draw(state) % (unsigned)all);
  work.seed = draw(state);
  work.count = drawCount(state, maxCount);
  return work;
}

void tryOut(ncclComm_t comm, cudaStream_t stream, size_t max, uint64_t seed) {
  Work works[workKinds];
  int size, own;
  MUST(ncclCommCount(comm, &size));
  MUST(ncclCommUserRank(comm, &own));
  Arena arena = makeArena(2 * workKinds * (size_t)size * (max * sizeof(int32_t) + 2 * alignment));
  for (int kind = 0; kind < workKinds; kind++) {
    works[kind] = drawWork(&seed, max, own, size);
    works[kind].kind = (WorkKind)kind;
    HOLDS(place(&arena, &works[kind]));
  }
  upload(&arena);
  for (int kind = 0; kind < workKinds; kind++) post(&arena, &works[kind], comm, stream);
  MUST(ended(stream));
  download(&arena);
  for (int kind = 0; kind < workKinds; kind++) check(&arena, &works[kind]);
  endArena(&arena);
}
