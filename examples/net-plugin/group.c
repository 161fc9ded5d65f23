// The operations of a group (group.h).
#include "group.h"

#include <stdlib.h>
#include <string.h>

// Bytes of a window that are a member's, and where they begin in it.
static size_t share(int rank, size_t bytesPerRank, size_t offset, size_t bytes, size_t* begin) {
  const size_t first = (size_t)rank * bytesPerRank, end = first + bytesPerRank;
  const size_t from = first > offset ? first : offset, to = end < offset + bytes ? end : offset + bytes;
  *begin = from > offset ? from - offset : 0;
  return to > from ? to - from : 0;
}

// NULL: too many are under way.
static struct operation* newOperation(struct group* group) {
  struct operation* operation = &group->operations[group->posted % COLL_MAX_REQUESTS];
  if (operation->isUsed) return NULL;
  struct exchange* exchanges = operation->exchanges;
  free(operation->scratch);
  *operation = (struct operation){.group = group, .exchanges = exchanges};
  if (exchanges == NULL) operation->exchanges = calloc((size_t)group->peerCount + 1, sizeof *exchanges);
  return operation->exchanges == NULL ? NULL : operation;
}

static int begin(struct operation* operation) {
  struct group* group = operation->group;
  for (int i = 0; i < group->peerCount; i++) {
    struct exchange* one = &operation->exchanges[i];
    int tag = GROUP_TAG, result = NET_OK;
    void* data = one->in;
    if (one->inBytes > 0)
      result = exampleReceive(group->peers[i].recvComm, 1, &data, &one->inBytes, &tag, NULL, NULL, &one->receiving);
    // The first member sends when it has reduced.
    if (result == NET_OK && group->rank != 0 && one->outBytes > 0)
      result = exampleSend(group->peers[i].sendComm, one->out, one->outBytes, GROUP_TAG, NULL, NULL, &one->sending);
    if (result != NET_OK) return group->error = result;
  }
  operation->isUsed = 1;
  operation->number = group->posted++;
  return NET_OK;
}

// Plans what moves: `bytes` of a window of which `per` belong to each member.
static int plan(struct operation* operation, size_t per, size_t offset, size_t bytes) {
  struct group* group = operation->group;
  size_t at = 0;
  const size_t mine = share(group->rank, per, offset, bytes, &at);
  operation->sendBytes = operation->kind == ALL_GATHER ? mine : bytes;
  operation->receiveBytes = operation->kind == REDUCE_SCATTER ? mine : bytes;
  if (group->rank != 0) {
    operation->exchanges[0] = (struct exchange){.in = operation->receive,
                                                .inBytes = operation->receiveBytes,
                                                .out = operation->send,
                                                .outBytes = operation->sendBytes};
    return NET_OK;
  }
  // The result of the whole window, and behind it what each member sends.
  const size_t pieces = operation->kind == ALL_GATHER ? 1 : (size_t)group->members;
  operation->scratch = malloc(bytes * pieces);
  if (operation->scratch == NULL) return NET_SYSTEM_ERROR;
  for (int i = 0; i < group->peerCount; i++) {
    struct exchange* one = &operation->exchanges[i];
    const size_t theirs = share(i + 1, per, offset, bytes, &at);
    memset(one, 0, sizeof *one);
    one->in = operation->kind == ALL_GATHER ? operation->scratch + at : operation->scratch + bytes * (size_t)(i + 1);
    one->inBytes = operation->kind == ALL_GATHER ? theirs : bytes;
    one->out = operation->kind == REDUCE_SCATTER ? operation->scratch + at : operation->scratch;
    one->outBytes = operation->kind == REDUCE_SCATTER ? theirs : bytes;
  }
  return NET_OK;
}

static int post(struct operation* operation, size_t per, size_t offset, size_t bytes, void** request) {
  int result = plan(operation, per, offset, bytes);
  if (result == NET_OK) result = begin(operation);
  if (result == NET_OK) *request = operation;
  return result;
}

int exampleAllReduce(void* opaque, void* send, void* receive, size_t count, int type, int op, void* sendRegistration,
                     void* receiveRegistration, void** request) {
  (void)sendRegistration, (void)receiveRegistration;
  struct group* group = opaque;
  *request = NULL;
  if (reducible(type, op) == 0) return NET_INVALID_ARGUMENT;
  if (group->error != NET_OK) return group->error;
  struct operation* made = newOperation(group);
  if (made == NULL) return NET_OK;  // not now
  made->kind = ALL_REDUCE, made->type = type, made->op = op, made->elements = count;
  made->send = send, made->receive = receive;
  return post(made, 0, 0, count * reducible(type, op), request);
}

int exampleAllGather(void* opaque, void* send, int parts, collPart* receive, size_t bytesPerRank, size_t windowOffset,
                     size_t windowBytes, void* sendRegistration, void** request) {
  (void)sendRegistration;
  struct group* group = opaque;
  *request = NULL;
  if (parts != 1) return NET_INVALID_ARGUMENT;
  if (group->error != NET_OK) return group->error;
  struct operation* made = newOperation(group);
  if (made == NULL) return NET_OK;
  made->kind = ALL_GATHER, made->send = send, made->receive = receive->address;
  return post(made, bytesPerRank, windowOffset, windowBytes, request);
}

int exampleReduceScatter(void* opaque, int parts, collPart* send, void* receive, size_t bytesPerRank,
                         size_t windowOffset, size_t windowBytes, int type, int op, void* receiveRegistration,
                         void** request) {
  (void)receiveRegistration;
  struct group* group = opaque;
  *request = NULL;
  if (parts != 1 || reducible(type, op) == 0) return NET_INVALID_ARGUMENT;
  if (group->error != NET_OK) return group->error;
  struct operation* made = newOperation(group);
  if (made == NULL) return NET_OK;
  made->kind = REDUCE_SCATTER, made->type = type, made->op = op, made->elements = windowBytes / reducible(type, op);
  made->send = send->address, made->receive = receive;
  return post(made, bytesPerRank, windowOffset, windowBytes, request);
}

// Tests the requests that are under way. 1: none is any more.
static int areComplete(struct operation* operation) {
  int left = 0;
  for (int i = 0; i < operation->group->peerCount; i++) {
    void** requests[] = {&operation->exchanges[i].receiving, &operation->exchanges[i].sending};
    for (int k = 0; k < 2; k++) {
      int done = 0, bytes = 0;
      if (*requests[k] == NULL) continue;
      const int result = exampleTest(*requests[k], &done, &bytes);
      if (result != NET_OK) operation->group->error = result;
      if (done) *requests[k] = NULL;
      left += !done;
    }
  }
  return left == 0;
}

// The first member has what all others have sent.
static void reduceAll(struct operation* operation) {
  struct group* group = operation->group;
  // Its own part is the first one of every window that contains it.
  if (operation->sendBytes > 0) memcpy(operation->scratch, operation->send, operation->sendBytes);
  for (int i = 0; operation->kind != ALL_GATHER && i < group->peerCount; i++)
    reduceInto(operation->scratch, operation->exchanges[i].in, operation->elements, operation->type, operation->op);
  if (operation->receiveBytes > 0) memcpy(operation->receive, operation->scratch, operation->receiveBytes);
  for (int i = 0; i < group->peerCount; i++) {
    struct exchange* one = &operation->exchanges[i];
    if (one->outBytes == 0) continue;
    const int result =
        exampleSend(group->peers[i].sendComm, one->out, one->outBytes, GROUP_TAG, NULL, NULL, &one->sending);
    if (result != NET_OK) group->error = result;
  }
  operation->isReduced = 1;
  group->reduced++;
}

int exampleTestGroup(void* opaque, int* done, int* bytes) {
  struct operation* operation = opaque;
  *done = 0;
  if (!areComplete(operation)) return operation->group->error;
  if (operation->group->rank == 0 && !operation->isReduced) {
    if (operation->number != operation->group->reduced) return NET_OK;  // an older one is first
    reduceAll(operation);
    if (!areComplete(operation)) return operation->group->error;
  }
  if (operation->group->error != NET_OK) return operation->group->error;
  if (bytes != NULL) *bytes = (int)operation->receiveBytes;
  operation->isUsed = 0;
  *done = 1;
  return NET_OK;
}
