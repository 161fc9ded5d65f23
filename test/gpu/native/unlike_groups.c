/* Rank 0 puts into one group what the others call one after the other: messages of two sizes, thus of any two
 * protocols, both from it, both to it, or one each way. None of them may wait for another of the group.
 *
 *   unlike_groups RANKS MOST    MOST: largest message in bytes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "rank.h"

enum { perPeer = 2, sizeCount = 5 };

static size_t max;

/* One message between rank 0 and `peer`: number 0 or 1 of the pair. */
typedef struct {
  size_t bytes;
  int peer, number, fromZero;
} Message;

static char valueOf(const Message* message, int round) {
  return (char)(message->peer * 31 + message->number * 11 + message->fromZero * 5 + round + 1);
}

/* Rank 0 has a place for each message of each peer, the others for theirs. */
static char* placeIn(char* memory, const Message* message) {
  const int pair = rank == 0 ? message->peer - 1 : 0;
  return memory + (size_t)(pair * perPeer + message->number) * max;
}

/* Number i of those that the calling rank has part in. */
static Message messageOf(int i, const size_t* bytes, int ways) {
  const int number = i % perPeer;
  return (Message){bytes[number], rank == 0 ? i / perPeer + 1 : rank, number, ways >> number & 1};
}

static void fill(char* device, char* host, const Message* message, int round, cudaStream_t stream) {
  const int sends = (rank == 0) == message->fromZero;
  memset(placeIn(host, message), sends ? valueOf(message, round) : 0, message->bytes);
  copy(placeIn(device, message), placeIn(host, message), message->bytes, stream);
}

static void post(char* device, const Message* message, ncclComm_t comm, cudaStream_t stream) {
  char* const at = placeIn(device, message);
  const int other = rank == 0 ? message->peer : 0;
  if ((rank == 0) == message->fromZero) {
    MUST(ncclSend(at, message->bytes, ncclInt8, other, comm, stream));
  } else {
    MUST(ncclRecv(at, message->bytes, ncclInt8, other, comm, stream));
  }
}

static void check(char* device, char* host, const Message* message, int round, cudaStream_t stream) {
  copy(placeIn(host, message), placeIn(device, message), message->bytes, stream);
  MUST(ended(stream));
  const char* seen = placeIn(host, message);
  for (size_t i = 0; i < message->bytes; i++) {
    if (seen[i] != valueOf(message, round)) {
      failed("byte %zu of %zu is %d, expected %d", i, message->bytes, seen[i], valueOf(message, round));
    }
  }
}

static void body(void) {
  at("joining");
  ncclComm_t comm = joinAll();
  const cudaStream_t stream = makeStream();
  const int peers = rank == 0 ? ranks - 1 : 1;
  const size_t bytes = max * perPeer * (size_t)peers;
  char *device = makeMemory(bytes), *host = malloc(bytes);
  HOLDS(host != NULL);
  const size_t sizes[sizeCount] = {0, 8, max / 4096 + 1, max / 8 - 3, max};
  for (int round = 0; round < sizeCount * sizeCount * 4; round++) {
    const int ways = round % 4;
    const size_t pair[perPeer] = {sizes[round / 4 % sizeCount], sizes[round / 4 / sizeCount]};
    at("%zu bytes %s rank 0, then %zu bytes %s it", pair[0], ways & 1 ? "from" : "to", pair[1],
       ways & 2 ? "from" : "to");
    for (int i = 0; i < peers * perPeer; i++) {
      const Message message = messageOf(i, pair, ways);
      fill(device, host, &message, round, stream);
    }
    if (rank == 0) MUST(ncclGroupStart());
    for (int i = 0; i < peers * perPeer; i++) {
      const Message message = messageOf(i, pair, ways);
      post(device, &message, comm, stream);
    }
    if (rank == 0) MUST(ncclGroupEnd());
    for (int i = 0; i < peers * perPeer; i++) {
      const Message message = messageOf(i, pair, ways);
      check(device, host, &message, round, stream);
    }
  }
  at("leaving");
  MUST(ncclCommDestroy(comm));
  endStream(stream);
  freeMemory(device);
  free(host);
}

int main(int argc, char** argv) {
  max = argc == 3 ? (size_t)atoll(argv[2]) : 0;
  if (max < 4096 || atoi(argv[1]) < 2) {
    fprintf(stderr, "usage: unlike_groups RANKS MOST   (2 ranks and 4096 bytes at least)\n");
    return 2;
  }
  const int status = startProcesses(atoi(argv[1]), 60, body);
  if (status == 0) printf("unlike_groups: %s ranks, up to %zu bytes: right\n", argv[1], max);
  return status;
}
