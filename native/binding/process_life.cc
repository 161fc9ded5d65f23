#include "binding/process_life.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace ncclrun::binding {
namespace {

// 0: the process has ended, also where nobody has reaped it yet.
uint64_t startTimeOf(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t got = file.valid() ? ::read(file.get(), text, sizeof text - 1) : 0;
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* const end = std::strrchr(text, ')');  // the name may hold anything, a parenthesis too
  char state = 0;
  int threads = 0;
  unsigned long long start = 0;
  // Fields 3, 20 and 22 of proc(5).
  constexpr const char* kFields = ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu";
  if (end == nullptr || std::sscanf(end, kFields, &state, &threads, &start) != 3) return 0;
  const bool isZombie = state == 'X' || (state == 'Z' && threads <= 1);  // else only its first thread has ended
  return isZombie ? 0 : start;
}

}  // namespace

ProcessLife ProcessLife::of(Descriptor descriptor, pid_t pid, bool isChild) {
  ProcessLife life;
  life.descriptor_ = std::move(descriptor);
  if (life.descriptor_.valid()) return life;
  if (errno == ESRCH) return life;
  life.isChild_ = isChild;
  life.startTime_ = startTimeOf(pid);
  if (isChild || life.startTime_ != 0) life.pid_ = pid;
  return life;
}

ProcessLife ProcessLife::ofChild(pid_t pid) {
  return of(Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))), pid, true);
}

ProcessLife ProcessLife::ofPeer(int socket, pid_t pid) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) != 0) {
    fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  }
  return of(Descriptor(fd), pid, false);
}

bool ProcessLife::hasEnded() const {
  if (pid_ == 0) return false;
  if (!isChild_) return startTimeOf(pid_) != startTime_;
  siginfo_t state = {};
  const int done = waitid(P_PID, static_cast<id_t>(pid_), &state, WEXITED | WNOHANG | WNOWAIT);
  return done == 0 ? state.si_pid == pid_ : errno == ECHILD;
}

void ProcessLife::forget() {
  descriptor_.reset();
  pid_ = 0;
}

}  // namespace ncclrun::binding
