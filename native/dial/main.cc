// ncclrun-dial HOST PORT SECONDS: what ssh's ProxyCommand with ProxyUseFdpass calls. It connects, switches off Nagle's
// algorithm, hands the socket to ssh over stdout (a Unix socket) and is gone. ssh itself leaves Nagle on for commands
// without a terminal, and its small messages then wait for the other side's delayed acknowledgement: two pauses of 40
// ms in every start.
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace {

constexpr int kMaxAddresses = 16;
// A lost packet is sent again after a second.
constexpr int kNextAddressMs = 300;

// An attempt that is being made.
struct Attempt {
  int socket;
  int64_t deadlineMs;
};

int64_t nowMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Begins to connect. A socket, or -1 with errno.
int beginConnect(const addrinfo& to) {
  const int fd = socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (connect(fd, to.ai_addr, to.ai_addrlen) == 0 || errno == EINPROGRESS) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int errorOf(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

void prepare(int fd) {
  const int on = 1;
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

// A connected socket, or -1 with the first address's error in `error`. Each address has `milliseconds`; the next one is
// tried when one fails or has not answered for a moment, and the first that connects counts. What is still open ends
// with this process.
int dial(const addrinfo* next, int milliseconds, int& error) {
  Attempt attempts[kMaxAddresses];
  int count = 0;
  int64_t nextMs = nowMs();
  error = 0;
  while (next != nullptr || count > 0) {
    int64_t now = nowMs();
    if (next != nullptr && count < kMaxAddresses && (now >= nextMs || count == 0)) {
      const int fd = beginConnect(*next);
      if (fd >= 0)
        attempts[count++] = {fd, now + milliseconds};
      else if (error == 0)
        error = errno;
      nextMs = fd >= 0 ? now + kNextAddressMs : now;
      next = next->ai_next;
      continue;
    }
    pollfd polled[kMaxAddresses];
    int64_t wakeMs = next != nullptr && count < kMaxAddresses ? nextMs : INT64_MAX;
    for (int i = 0; i < count; ++i) {
      polled[i] = {.fd = attempts[i].socket, .events = POLLOUT, .revents = 0};
      if (attempts[i].deadlineMs < wakeMs) wakeMs = attempts[i].deadlineMs;
    }
    poll(polled, static_cast<nfds_t>(count), static_cast<int>(wakeMs > now ? wakeMs - now : 0));
    now = nowMs();
    for (int i = count - 1; i >= 0; --i) {
      const int failure = polled[i].revents != 0          ? errorOf(attempts[i].socket)
                          : now >= attempts[i].deadlineMs ? ETIMEDOUT
                                                          : EINPROGRESS;
      if (failure == EINPROGRESS) continue;
      if (failure == 0) {
        prepare(attempts[i].socket);
        return attempts[i].socket;
      }
      if (error == 0) error = failure;
      close(attempts[i].socket);
      attempts[i] = attempts[--count];
      nextMs = now;
    }
  }
  return -1;
}

bool handOver(int through, int fd) {
  char byte = 0;
  iovec piece = {.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(through, &message, 0) == 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fputs("ncclrun-dial is started by ssh for ncclrun: ncclrun-dial HOST PORT SECONDS\n", stderr);
    return 2;
  }
  // An ssh that is killed while we wait takes us with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* host = argv[1];
  const char* port = argv[2];
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* addresses = nullptr;
  const int problem = getaddrinfo(host, port, &wanted, &addresses);
  if (problem != 0) {
    fprintf(stderr, "could not resolve hostname %s: %s\n", host, gai_strerror(problem));
    return 1;
  }
  int error = 0;
  const int fd = dial(addresses, atoi(argv[3]) * 1000, error);
  if (fd < 0) {
    fprintf(stderr, "connect to host %s port %s: %s\n", host, port, strerror(error));
    return 1;
  }
  if (!handOver(STDOUT_FILENO, fd)) {
    fprintf(stderr, "cannot hand the connection to %s over to ssh: %s\n", host, strerror(errno));
    return 1;
  }
  return 0;
}
