/* A slow cable: carries the Ethernet frames of two interfaces to each other, each so many milliseconds late and a
 * little more at random, in their order. delay INTERFACE INTERFACE MS JITTER_MS. Says "ready"; ends when its standard
 * input does. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

/* With what the kernel says of its checksum and segments before it (PACKET_VNET_HDR): it leaves both to the receiver.
 */
enum { maxBytes = 10 + 14 + 65536, maxQueued = 4096 };

typedef struct Frame {
  struct Frame* next;
  double due;
  size_t bytes;
  char data[];
} Frame;

typedef struct {
  Frame* first;
  Frame** end;
  int length;
} Queue;

static void must(int holds, const char* what) {
  if (holds) return;
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static int openInterface(const char* name) {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL)), on = 1, room = 8 << 20;
  const struct sockaddr_ll address = {
      .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(name)};
  const struct packet_mreq all = {.mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
  must(fd >= 0 && address.sll_ifindex > 0, name);
  must(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) == 0, "PACKET_VNET_HDR");
  must(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) == 0, "PACKET_IGNORE_OUTGOING");
  must(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) == 0, "SO_RCVBUFFORCE");
  must(bind(fd, (const struct sockaddr*)&address, sizeof address) == 0, "bind");
  must(setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) == 0, "PACKET_ADD_MEMBERSHIP");
  return fd;
}

/* What has come is queued until it is due; a full queue drops it, as a switch would. */
static void take(int fd, Queue* queue, double ms, double jitter) {
  static char data[maxBytes];
  for (ssize_t bytes; (bytes = recv(fd, data, sizeof data, 0)) > 0;) {
    if (queue->length == maxQueued) continue;
    Frame* frame = malloc(sizeof *frame + (size_t)bytes);
    must(frame != NULL, "memory");
    *frame = (Frame){.due = now() + ms + jitter * drand48(), .bytes = (size_t)bytes};
    memcpy(frame->data, data, (size_t)bytes);
    *queue->end = frame;
    queue->end = &frame->next;
    queue->length++;
  }
}

/* Milliseconds until the next frame is due; -1: there is none. */
static int pass(int fd, Queue* queue) {
  while (queue->first != NULL) {
    Frame* frame = queue->first;
    const double wait = frame->due - now();
    if (wait > 0) return (int)wait + 1;
    /* What a slow cable has no room for is lost without a word. */
    if (send(fd, frame->data, frame->bytes, 0) < 0 && errno != EAGAIN && errno != ENOBUFS) perror("send");
    queue->first = frame->next;
    if (queue->first == NULL) queue->end = &queue->first;
    queue->length--;
    free(frame);
  }
  return -1;
}

int main(int argc, char** argv) {
  must(argc == 5, "delay INTERFACE INTERFACE MS JITTER_MS");
  const int fds[2] = {openInterface(argv[1]), openInterface(argv[2])};
  const double ms = atof(argv[3]), jitter = atof(argv[4]);
  Queue queues[2];
  for (int i = 0; i < 2; i++) queues[i] = (Queue){.end = &queues[i].first};
  puts("ready");
  fflush(stdout);
  for (;;) {
    const int one = pass(fds[1], &queues[0]), other = pass(fds[0], &queues[1]);
    const int wait = one < 0 ? other : other < 0 || one < other ? one : other;
    struct pollfd news[3] = {
        {.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    poll(news, 3, wait);
    if (news[2].revents != 0) return 0;
    for (int i = 0; i < 2; i++) {
      if (news[i].revents != 0) take(fds[i], &queues[i], ms, jitter);
    }
  }
}
