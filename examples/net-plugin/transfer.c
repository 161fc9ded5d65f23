// Sending and receiving. One socket carries one direction: a header and the payload for each message, in the order of
// the isends. Requests live in a ring; a NULL request says that the ring is full.
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "example.h"

enum { MAX_AT_ONCE = 4 << 20 };  // bytes

struct header {
  uint64_t bytes;
  int32_t tag;
  uint32_t unused;
};

struct buffer {
  char* data;
  size_t bytes;  // of a send: the message's; of a receive: the capacity, then the message's
  int tag;
  int isFilled;
};

struct request {
  struct comm* comm;
  int isUsed, isDone;
  int count, filled;
  struct buffer buffers[NET_MAX_RECEIVES];
};

struct comm {
  int fd;
  int error;                    // of an earlier call: the connection is dead
  uint64_t posted, progressed;  // requests ever made, and those of them that are done
  struct request requests[NET_MAX_REQUESTS];
  int sends;
  // The message under way.
  struct header header;
  size_t moved;           // bytes of header and payload
  struct buffer* buffer;  // of the receive that it belongs to
};

void* makeComm(int fd) {
  const int on = 1;
  struct comm* comm = calloc(1, sizeof *comm);
  if (comm == NULL) return NULL;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  comm->fd = fd;
  return comm;
}

int exampleClose(void* opaque) {
  struct comm* comm = opaque;
  close(comm->fd);
  free(comm);
  return NET_OK;
}

// Bytes that moved; 0: none now; the comm's error is set where the connection is broken.
static size_t moved(struct comm* comm, ssize_t result) {
  if (result > 0) return (size_t)result;
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  const int isPeers = result == 0 || errno == EPIPE || errno == ECONNRESET || errno == ETIMEDOUT;
  WARN("%s: %s", comm->sends ? "send" : "receive",
       result == 0 ? "the peer has closed the connection" : strerror(errno));
  comm->error = isPeers ? NET_REMOTE_ERROR : NET_SYSTEM_ERROR;
  return 0;
}

// No call takes long, however long the message is.
static size_t atOnce(size_t bytes) { return bytes < MAX_AT_ONCE ? bytes : MAX_AT_ONCE; }

// 1: the message has gone, 0: not now.
static int sendMessage(struct comm* comm, struct request* request) {
  const struct buffer* buffer = &request->buffers[0];
  const size_t all = sizeof comm->header + buffer->bytes;
  comm->header = (struct header){.bytes = buffer->bytes, .tag = buffer->tag};
  struct iovec parts[2];
  struct msghdr message = {.msg_iov = parts};
  if (comm->moved < sizeof comm->header)
    parts[message.msg_iovlen++] = (struct iovec){(char*)&comm->header + comm->moved, sizeof comm->header - comm->moved};
  const size_t sent = comm->moved < sizeof comm->header ? 0 : comm->moved - sizeof comm->header;
  if (sent < buffer->bytes)
    parts[message.msg_iovlen++] = (struct iovec){buffer->data + sent, atOnce(buffer->bytes - sent)};
  comm->moved += moved(comm, sendmsg(comm->fd, &message, MSG_NOSIGNAL));
  if (comm->moved < all) return 0;
  comm->moved = 0;
  return 1;
}

// The buffer of the oldest receive that the header's message belongs in; NULL with the comm's error set: none.
static struct buffer* bufferOf(struct comm* comm, struct request* request) {
  for (int i = 0; i < request->count; i++) {
    struct buffer* buffer = &request->buffers[i];
    if (buffer->isFilled || buffer->tag != comm->header.tag) continue;
    if (comm->header.bytes <= buffer->bytes) return buffer;
    WARN("receive: a message of %llu bytes is longer than its buffer of %zu", (unsigned long long)comm->header.bytes,
         buffer->bytes);
    comm->error = NET_INVALID_USAGE;
    return NULL;
  }
  WARN("receive: no buffer has the tag %d", comm->header.tag);
  comm->error = NET_INVALID_USAGE;
  return NULL;
}

// 1: all buffers are filled, 0: not now.
static int receiveMessages(struct comm* comm, struct request* request) {
  while (request->filled < request->count) {
    if (comm->moved < sizeof comm->header) {
      const size_t rest = sizeof comm->header - comm->moved;
      comm->moved += moved(comm, recv(comm->fd, (char*)&comm->header + comm->moved, rest, 0));
      if (comm->moved < sizeof comm->header) return 0;
    }
    if (comm->buffer == NULL) comm->buffer = bufferOf(comm, request);
    if (comm->buffer == NULL) return 0;
    const size_t all = sizeof comm->header + comm->header.bytes;
    if (comm->moved < all) {
      char* to = comm->buffer->data + (comm->moved - sizeof comm->header);
      comm->moved += moved(comm, recv(comm->fd, to, atOnce(all - comm->moved), 0));
      if (comm->moved < all) return 0;
    }
    comm->buffer->bytes = comm->header.bytes;
    comm->buffer->isFilled = 1;
    comm->buffer = NULL;
    comm->moved = 0;
    request->filled++;
  }
  return 1;
}

// Moves what can be moved, in the order in which the requests were made.
static void progress(struct comm* comm) {
  while (comm->error == NET_OK && comm->progressed < comm->posted) {
    struct request* request = &comm->requests[comm->progressed % NET_MAX_REQUESTS];
    if (!(comm->sends ? sendMessage(comm, request) : receiveMessages(comm, request))) return;
    request->isDone = 1;
    comm->progressed++;
  }
}

// NULL: the ring is full.
static struct request* newRequest(struct comm* comm, int count) {
  struct request* request = &comm->requests[comm->posted % NET_MAX_REQUESTS];
  if (request->isUsed) return NULL;
  memset(request, 0, sizeof *request);
  request->comm = comm;
  request->isUsed = 1;
  request->count = count;
  comm->posted++;
  return request;
}

int exampleSend(void* opaque, void* data, size_t bytes, int tag, void* registration, void* profiler, void** out) {
  (void)registration, (void)profiler;
  struct comm* comm = opaque;
  comm->sends = 1;
  *out = NULL;
  if (comm->error != NET_OK) return comm->error;
  struct request* request = newRequest(comm, 1);
  if (request == NULL) return NET_OK;  // not now
  request->buffers[0] = (struct buffer){.data = data, .bytes = bytes, .tag = tag};
  progress(comm);
  *out = request;
  return NET_OK;
}

int exampleReceive(void* opaque, int count, void** data, size_t* bytes, int* tags, void** registrations,
                   void** profilers, void** out) {
  (void)registrations, (void)profilers;
  struct comm* comm = opaque;
  *out = NULL;
  if (count < 1 || count > NET_MAX_RECEIVES) return NET_INVALID_ARGUMENT;
  if (comm->error != NET_OK) return comm->error;
  struct request* request = newRequest(comm, count);
  if (request == NULL) return NET_OK;  // not now
  for (int i = 0; i < count; i++)
    request->buffers[i] = (struct buffer){.data = data[i], .bytes = bytes[i], .tag = tags[i]};
  *out = request;
  return NET_OK;
}

int exampleTest(void* opaque, int* done, int* bytes) {
  struct request* request = opaque;
  *done = 0;
  if (!request->isDone) progress(request->comm);
  if (!request->isDone) return request->comm->error;
  for (int i = 0; bytes != NULL && i < request->count; i++) bytes[i] = (int)request->buffers[i].bytes;
  *done = 1;
  request->isUsed = 0;
  return NET_OK;
}
