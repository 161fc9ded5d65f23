// Listening, connecting and accepting. No call blocks: each does what it can, and leaves the comm NULL until the other
// side has done its part. Whoever connects sends the listener's key; whoever accepts answers with one byte.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "example.h"

enum { MAX_GUESTS = 8, KEY_BYTES = 16, BACKLOG = 128 };

// What travels to the other side. The engine hands the same 128 bytes to every connect() of one connection, so the
// state of the handshake can be kept in them.
struct handle {
  union address address;
  unsigned char key[KEY_BYTES];
  struct stage* stage;
};
_Static_assert(sizeof(struct handle) <= NET_HANDLE_BYTES, "the handle has 128 bytes");

struct listener {
  int fd;
  unsigned char key[KEY_BYTES];
  // Connections that have not sent the whole key yet. Anybody may connect: the oldest makes room for a new one.
  struct guest {
    int fd;
    size_t received;
    unsigned char key[KEY_BYTES];
  } guests[MAX_GUESTS];
  int count;
};

struct stage {
  int fd;
  enum { CONNECTING, SENDING_KEY, WAITING } state;
  size_t sent;
  struct context* context;
  struct stage* next;
};

static socklen_t lengthOf(const union address* address) {
  return address->any.sa_family == AF_INET ? sizeof address->ip4 : sizeof address->ip6;
}

static int isForLater(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

static int systemError(const char* what) {
  WARN("%s: %s", what, strerror(errno));
  return NET_SYSTEM_ERROR;
}

static int newSocket(const union address* address) {
  return socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int exampleListen(void* context, int index, void* opaque, void** listenComm) {
  (void)context;
  const struct device* device = deviceAt(index);
  if (device == NULL) return NET_INVALID_ARGUMENT;
  struct handle* handle = opaque;
  memset(handle, 0, NET_HANDLE_BYTES);
  handle->address = device->address;
  socklen_t length = sizeof handle->address;
  const int fd = newSocket(&device->address);
  if (fd < 0) return systemError("socket");
  struct listener* made = calloc(1, sizeof *made);
  if (made == NULL || bind(fd, &device->address.any, lengthOf(&device->address)) != 0 || listen(fd, BACKLOG) != 0 ||
      getsockname(fd, &handle->address.any, &length) != 0 ||
      getrandom(made->key, sizeof made->key, 0) != (ssize_t)sizeof made->key) {
    const int result = systemError("listen");
    close(fd);
    free(made);
    return result;
  }
  memcpy(handle->key, made->key, sizeof made->key);
  made->fd = fd;
  *listenComm = made;
  return NET_OK;
}

int exampleCloseListen(void* listenComm) {
  struct listener* listener = listenComm;
  for (int i = 0; i < listener->count; i++) close(listener->guests[i].fd);
  close(listener->fd);
  free(listener);
  return NET_OK;
}

static void freeStage(struct stage* stage) {
  pthread_mutex_lock(&stage->context->mutex);
  struct stage** link = &stage->context->stages;
  while (*link != stage) link = &(*link)->next;
  *link = stage->next;
  pthread_mutex_unlock(&stage->context->mutex);
  free(stage);
}

void freeStages(struct context* context) {
  while (context->stages != NULL) {
    close(context->stages->fd);
    freeStage(context->stages);
  }
}

static struct stage* begin(struct context* context, const struct handle* handle) {
  const int fd = newSocket(&handle->address);
  if (fd < 0) return NULL;
  struct stage* stage = calloc(1, sizeof *stage);
  if (stage == NULL || (connect(fd, &handle->address.any, lengthOf(&handle->address)) != 0 && errno != EINPROGRESS)) {
    close(fd);
    free(stage);
    return NULL;
  }
  pthread_mutex_lock(&context->mutex);
  *stage = (struct stage){.fd = fd, .state = CONNECTING, .context = context, .next = context->stages};
  context->stages = stage;
  pthread_mutex_unlock(&context->mutex);
  return stage;
}

// Goes one state on. 0: done, 1: not now, -1: errno says why not.
static int goOn(struct stage* stage, const struct handle* handle) {
  if (stage->state == CONNECTING) {
    struct pollfd ready = {.fd = stage->fd, .events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof error;
    if (poll(&ready, 1, 0) <= 0) return 1;
    if (getsockopt(stage->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return -1;
    errno = error;
    return error != 0 ? -1 : 0;
  }
  if (stage->state == SENDING_KEY) {
    const size_t rest = KEY_BYTES - stage->sent;
    const ssize_t sent = send(stage->fd, handle->key + stage->sent, rest, MSG_NOSIGNAL);
    if (sent < 0) return isForLater() ? 1 : -1;
    stage->sent += (size_t)sent;
    return stage->sent == KEY_BYTES ? 0 : 1;
  }
  char answer;
  const ssize_t received = recv(stage->fd, &answer, 1, 0);
  if (received < 0) return isForLater() ? 1 : -1;
  errno = ECONNRESET;
  return received == 1 ? 0 : -1;
}

int exampleConnect(void* context, int device, void* opaque, void** sendComm, netDeviceHandle** deviceHandle) {
  (void)device, (void)deviceHandle;
  struct handle* handle = opaque;
  *sendComm = NULL;
  if (handle->stage == NULL) handle->stage = begin(context, handle);
  struct stage* stage = handle->stage;
  if (stage == NULL) return systemError("connect");
  for (;;) {
    const int result = goOn(stage, handle);
    if (result > 0) return NET_OK;  // and *sendComm is NULL: call again
    if (result < 0) {
      WARN("connect: %s", strerror(errno));
      close(stage->fd);
      freeStage(stage);
      handle->stage = NULL;
      return NET_REMOTE_ERROR;
    }
    if (stage->state == WAITING) break;
    stage->state++;
  }
  *sendComm = makeComm(stage->fd);
  if (*sendComm == NULL) close(stage->fd);
  freeStage(stage);
  handle->stage = NULL;
  return *sendComm == NULL ? NET_SYSTEM_ERROR : NET_OK;
}

static void removeGuest(struct listener* listener, int index) {
  listener->count--;
  memmove(&listener->guests[index], &listener->guests[index + 1],
          (size_t)(listener->count - index) * sizeof listener->guests[0]);
}

// 1: has sent the key, 0: not all of it yet, -1: is none of ours.
static int hear(struct guest* guest, const unsigned char* key) {
  const ssize_t got = recv(guest->fd, guest->key + guest->received, KEY_BYTES - guest->received, 0);
  if (got < 0 && isForLater()) return 0;
  if (got <= 0) return -1;
  guest->received += (size_t)got;
  if (guest->received < KEY_BYTES) return 0;
  if (memcmp(guest->key, key, KEY_BYTES) != 0) return -1;
  return send(guest->fd, "", 1, MSG_NOSIGNAL) == 1 ? 1 : -1;
}

int exampleAccept(void* listenComm, void** recvComm, netDeviceHandle** deviceHandle) {
  (void)deviceHandle;
  struct listener* listener = listenComm;
  *recvComm = NULL;
  const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0 && !isForLater() && errno != ECONNABORTED) return systemError("accept");
  if (fd >= 0) {
    if (listener->count == MAX_GUESTS) {
      close(listener->guests[0].fd);
      removeGuest(listener, 0);
    }
    listener->guests[listener->count++] = (struct guest){.fd = fd};
  }
  for (int i = 0; i < listener->count; i++) {
    const int result = hear(&listener->guests[i], listener->key);
    if (result == 0) continue;
    const int guest = listener->guests[i].fd;
    removeGuest(listener, i--);
    if (result > 0) *recvComm = makeComm(guest);
    if (*recvComm != NULL) break;
    close(guest);
    if (result > 0) return NET_SYSTEM_ERROR;
  }
  return NET_OK;  // *recvComm is NULL as long as nobody has connected
}
