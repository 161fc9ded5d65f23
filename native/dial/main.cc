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
#include <unistd.h>

#include <cstdio>

namespace {

// 0, or what went wrong.
int connectWithin(int socket, const addrinfo& to, int milliseconds) {
  const int flags = fcntl(socket, F_GETFL);
  fcntl(socket, F_SETFL, flags | O_NONBLOCK);
  if (connect(socket, to.ai_addr, to.ai_addrlen) < 0) {
    if (errno != EINPROGRESS) return errno;
    pollfd connected = {.fd = socket, .events = POLLOUT, .revents = 0};
    if (poll(&connected, 1, milliseconds) == 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) < 0) return errno;
    if (error != 0) return error;
  }
  fcntl(socket, F_SETFL, flags);
  return 0;
}

// A connected socket, or -1 with the last address's error in `error`.
int dial(const addrinfo* addresses, int milliseconds, int& error) {
  for (const addrinfo* to = addresses; to != nullptr; to = to->ai_next) {
    const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      error = errno;
      continue;
    }
    error = connectWithin(fd, *to, milliseconds);
    if (error == 0) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
      return fd;
    }
    close(fd);
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
