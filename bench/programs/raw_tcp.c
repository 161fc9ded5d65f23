/* What TCP gives without an engine: SOCKETS connections of which each moves its share of every message between buffers
 * of the same footprint as the engine's, by THREADS threads (0: the main thread). WAIT: "spin" or "sleep", what a
 * thread does while none of its sockets has room or data. Exchanges, spinning, in which both sides send and receive as
 * much at once over one socket: the least that a collective of two hosts can take. And a ping-pong of 8 bytes with both
 * ends spinning.
 *
 *   raw_tcp receive ADDRESS WAIT SOCKETS THREADS BYTES MESSAGES        prints its port, then MB/s
 *   raw_tcp send PEER PORT WAIT SOCKETS THREADS BYTES MESSAGES
 *   raw_tcp exchange-at ADDRESS BEGIN END FACTOR WARM-UP ROUNDS        prints its port
 *   raw_tcp exchange PEER PORT BEGIN END FACTOR WARM-UP ROUNDS         prints "bytes microseconds" of each size
 *   raw_tcp pong ADDRESS ROUNDS                                        prints its port
 *   raw_tcp ping PEER PORT ROUNDS                                      prints microseconds per round trip / 2
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_SOCKETS 64
#define DEPTH 8 /* messages' buffers, as the benchmark of the engine has them; fewer of large ones */
#define FOOTPRINT (128L << 20)
#define WARM_UP 4 /* the part of the messages that goes ahead, and every buffer once, outside the time taken */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void must(int fine, const char* what) {
  if (fine) return;
  perror(what);
  exit(1);
}

static struct sockaddr_in at(const char* address, int port) {
  struct sockaddr_in place;
  memset(&place, 0, sizeof place);
  place.sin_family = AF_INET;
  place.sin_port = htons((unsigned short)port);
  must(inet_pton(AF_INET, address, &place.sin_addr) == 1, "address");
  return place;
}

static int no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

static int listen_at(const char* address) {
  struct sockaddr_in place = at(address, 0);
  socklen_t length = sizeof place;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  must(bind(fd, (struct sockaddr*)&place, length) == 0 && listen(fd, MAX_SOCKETS) == 0, "listen");
  must(getsockname(fd, (struct sockaddr*)&place, &length) == 0, "getsockname");
  printf("%d\n", ntohs(place.sin_port));
  fflush(stdout);
  return fd;
}

static int connect_to(const char* address, int port) {
  const struct sockaddr_in place = at(address, port);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  must(connect(fd, (const struct sockaddr*)&place, sizeof place) == 0, "connect");
  return no_delay(fd);
}

static long depth_of(size_t bytes) {
  const long fit = FOOTPRINT / (long)bytes;
  return fit < DEPTH ? fit : DEPTH;
}

struct share {
  int fd, sends, index, sockets;
  long depth;
  char* buffer;
  size_t bytes;
  long messages, message;
  size_t done;
};

/* Moves what can be moved without blocking; 1 when the share of all messages is through. */
static int advance(struct share* s) {
  const size_t slice = s->bytes / (size_t)s->sockets;
  while (s->message < s->messages) {
    char* const data = s->buffer + (size_t)(s->message % s->depth) * s->bytes + (size_t)s->index * slice + s->done;
    const ssize_t moved =
        s->sends ? send(s->fd, data, slice - s->done, MSG_DONTWAIT) : recv(s->fd, data, slice - s->done, MSG_DONTWAIT);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    must(moved > 0, "transfer");
    s->done += (size_t)moved;
    if (s->done < slice) continue;
    s->done = 0;
    s->message++;
  }
  return 1;
}

struct work {
  struct share* shares;
  int first, step, count, sleeps;
};

static void* run(void* argument) {
  const struct work* const work = argument;
  struct pollfd open[MAX_SOCKETS];
  int count;
  do {
    count = 0;
    for (int i = work->first; i < work->count; i += work->step) {
      struct share* const share = &work->shares[i];
      if (!advance(share)) open[count++] = (struct pollfd){share->fd, share->sends ? POLLOUT : POLLIN, 0};
    }
    if (work->sleeps && count > 0) poll(open, (nfds_t)count, -1);
  } while (count > 0);
  return NULL;
}

struct way {
  int sends, sleeps, sockets, threads;
};

/* The MB/s of `messages` in `buffer`. */
static double transfer(const int* fds, const struct way* way, char* buffer, size_t bytes, long messages) {
  struct share shares[MAX_SOCKETS];
  struct work works[MAX_SOCKETS];
  pthread_t ids[MAX_SOCKETS];
  for (int i = 0; i < way->sockets; i++)
    shares[i] = (struct share){fds[i], way->sends, i, way->sockets, depth_of(bytes), buffer, bytes, messages, 0, 0};
  const double begin = now();
  for (int i = 0; i < way->threads; i++) {
    works[i] = (struct work){shares, i, way->threads, way->sockets, way->sleeps};
    must(pthread_create(&ids[i], NULL, run, &works[i]) == 0, "pthread_create");
  }
  for (int i = 0; i < way->threads; i++) pthread_join(ids[i], NULL);
  if (way->threads == 0) run(&(struct work){shares, 0, 1, way->sockets, way->sleeps});
  return (double)bytes * (double)messages / (now() - begin) / 1e6;
}

/* The same once the sockets have reached their speed. `words`: WAIT and what follows it. */
static double stream(const int* fds, int sends, char** words) {
  const struct way way = {sends, strcmp(words[0], "sleep") == 0, atoi(words[1]), atoi(words[2])};
  const size_t bytes = strtoul(words[3], NULL, 10);
  const long messages = atol(words[4]);
  char* const buffer = malloc((size_t)depth_of(bytes) * bytes);
  must(buffer != NULL, "malloc");
  memset(buffer, 1, (size_t)depth_of(bytes) * bytes);
  transfer(fds, &way, buffer, bytes, messages / WARM_UP + depth_of(bytes));
  return transfer(fds, &way, buffer, bytes, messages);
}

/* Seconds of `rounds` exchanges of `bytes` each way. Each side is done when it has sent and received all of a round. */
static double exchange(int fd, const char* from, char* to, size_t bytes, long rounds) {
  const double begin = now();
  for (long round = 0; round < rounds; round++) {
    size_t sent = 0, received = 0;
    while (sent < bytes || received < bytes) {
      const ssize_t out = sent < bytes ? send(fd, from + sent, bytes - sent, MSG_DONTWAIT) : 0;
      must(out >= 0 || errno == EAGAIN || errno == EINTR, "send");
      if (out > 0) sent += (size_t)out;
      const ssize_t in = received < bytes ? recv(fd, to + received, bytes - received, MSG_DONTWAIT) : 1;
      must(in > 0 || (in < 0 && (errno == EAGAIN || errno == EINTR)), "recv");
      if (in > 0 && received < bytes) received += (size_t)in;
    }
  }
  return now() - begin;
}

/* `words`: BEGIN and what follows it. */
static void exchanges(int fd, char** words, int prints) {
  const size_t end = strtoul(words[1], NULL, 10), factor = strtoul(words[2], NULL, 10);
  const long warm_up = atol(words[3]), rounds = atol(words[4]);
  char *const from = malloc(end), *const to = malloc(end);
  must(from != NULL && to != NULL && factor > 1, "exchange");
  memset(from, 1, end);
  memset(to, 1, end);
  for (size_t bytes = strtoul(words[0], NULL, 10); bytes <= end; bytes *= factor) {
    exchange(fd, from, to, bytes, warm_up);
    const double seconds = exchange(fd, from, to, bytes, rounds);
    if (prints) printf("%zu %.3f\n", bytes, seconds / (double)rounds * 1e6);
  }
}

int main(int argc, char** argv) {
  int fds[MAX_SOCKETS];
  if (argc == 8 && strcmp(argv[1], "receive") == 0) {
    const int listening = listen_at(argv[2]), sockets = atoi(argv[4]);
    for (int i = 0; i < sockets; i++) fds[i] = no_delay(accept(listening, NULL, NULL));
    printf("%.1f\n", stream(fds, 0, argv + 3));
  } else if (argc == 9 && strcmp(argv[1], "send") == 0) {
    const int sockets = atoi(argv[5]);
    for (int i = 0; i < sockets; i++) fds[i] = connect_to(argv[2], atoi(argv[3]));
    stream(fds, 1, argv + 4);
  } else if (argc == 8 && strcmp(argv[1], "exchange-at") == 0) {
    exchanges(no_delay(accept(listen_at(argv[2]), NULL, NULL)), argv + 3, 0);
  } else if (argc == 9 && strcmp(argv[1], "exchange") == 0) {
    exchanges(connect_to(argv[2], atoi(argv[3])), argv + 4, 1);
  } else if (argc == 4 && strcmp(argv[1], "pong") == 0) {
    const int listening = listen_at(argv[2]), fd = no_delay(accept(listening, NULL, NULL));
    char data[8];
    for (long i = 0; i < atol(argv[3]); i++) {
      while (recv(fd, data, sizeof data, MSG_DONTWAIT) != sizeof data) {
      }
      must(send(fd, data, sizeof data, 0) == sizeof data, "send");
    }
  } else if (argc == 5 && strcmp(argv[1], "ping") == 0) {
    const int fd = connect_to(argv[2], atoi(argv[3]));
    const long rounds = atol(argv[4]);
    char data[8] = {0};
    const double begin = now();
    for (long i = 0; i < rounds; i++) {
      must(send(fd, data, sizeof data, 0) == sizeof data, "send");
      while (recv(fd, data, sizeof data, MSG_DONTWAIT) != sizeof data) {
      }
    }
    printf("%.3f\n", (now() - begin) / (double)rounds / 2 * 1e6);
  } else {
    return 2;
  }
  return 0;
}
