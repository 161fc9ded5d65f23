#include "guardian/warden.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "guardian/clock.h"
#include "guardian/guardian.h"
#include "guardian/processes.h"
#include "guardian/removal.h"

namespace ncclrun::guardian {
namespace {

// A sign of life is due this often at most.
constexpr uint64_t kPulseMs = 250;
// Silence counts in slices that end on time: while this process was stopped too, nobody could have been heard.
constexpr int kSliceMs = 500;
// The guardian and the agent judge each other first.
constexpr uint32_t kMarginMs = 1000;

// As long as a process is our parent, its number is its own.
bool isParent(pid_t pid) { return pid > 0 && getppid() == pid; }

bool isStopped(pid_t pid) {
  Survivor process = {};
  return readStatus(pid, process) && (process.state == 'T' || process.state == 't');
}

class Warden {
 public:
  Warden(const Ward& ward, pid_t guardian, int link, int signals)
      : ward_(ward), guardian_(guardian), link_(link), signals_(signals), leaseMs_(ward.leaseMs) {}

  [[noreturn]] void run() {
    const bool silenced = !awaitEnd();
    if (silenced) kill(guardian_, SIGKILL);
    if (silenced || !exitsByItself()) endAll();
    const bool exited = reaped_ && WIFEXITED(status_);
    const bool agentSilent = silenced || (exited && WEXITSTATUS(status_) == int(Outcome::silence));
    if (agentSilent && isParent(ward_.agent)) kill(ward_.agent, SIGKILL);  // a stopped one would stay for ever
    if (!exited || leaseMs_ > 0) endStoppedAgent(ward_.agent, leaseMs_);
    exitAlike();
  }

 private:
  // True when the guardian has closed its end, which its death does too; false when it was silent for too long.
  bool awaitEnd() {
    uint64_t silentMs = 0;
    for (;;) {
      pollfd word = {.fd = link_, .events = POLLIN, .revents = 0};
      const uint64_t begin = monotonicMs();
      if (poll(&word, 1, leaseMs_ == 0 ? -1 : kSliceMs) > 0) {
        if (!readLease()) return true;
        silentMs = 0;
      } else if (monotonicMs() - begin < 2 * kSliceMs) {
        silentMs += kSliceMs;
      }
      if (leaseMs_ == 0 || silentMs <= leaseMs_ + kMarginMs) continue;
      dprintf(2, "ncclrun-warden: no sign of life from the guardian for %llu ms; ending the ranks\n",
              static_cast<unsigned long long>(silentMs));
      return false;
    }
  }

  bool readLease() { return recv(link_, &leaseMs_, sizeof leaseMs_, MSG_DONTWAIT) == sizeof leaseMs_; }

  // Waits for the guardian, which has closed its end. An exit of its own means that it has ended the ranks, or named
  // those that it could not.
  bool exitsByItself() {
    while (waitpid(guardian_, &status_, 0) < 0) continue;
    reaped_ = true;
    return WIFEXITED(status_);
  }

  void endAll() {
    Ending ending(monotonicMs());
    for (bool left = true; left && !ending.over(monotonicMs(), killDescendants());) {
      pollfd childEvent = {.fd = signals_, .events = POLLIN, .revents = 0};
      poll(&childEvent, 1, kEndingTickMs);
      left = reap();
    }
    if (ward_.runtimeDirectory[0] == 0) return;
    Removal removal(ward_.runtimeDirectory);
    const uint64_t deadline = monotonicMs() + kRemovalMs;
    while (removal.step() && monotonicMs() < deadline) continue;
  }

  // False when no child is left.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid <= 0) return pid == 0;
      if (pid != guardian_) continue;
      status_ = status;
      reaped_ = true;
    }
  }

  [[noreturn]] void exitAlike() const {
    if (reaped_ && WIFEXITED(status_)) _exit(WEXITSTATUS(status_));
    const int number = reaped_ && WIFSIGNALED(status_) ? WTERMSIG(status_) : SIGKILL;
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);  // the guardian's own core is the one that tells something
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, number);
    sigprocmask(SIG_UNBLOCK, &mask, nullptr);
    raise(number);
    _exit(128 + number);
  }

  Ward ward_;
  pid_t guardian_;
  int link_;
  int signals_;
  uint32_t leaseMs_;  // the guardian must be heard of again within it; 0: whenever it likes
  int status_ = 0;
  bool reaped_ = false;
};

// `processName` is argv[0]: its end names the program in ps and pgrep.
void rename(char* processName) {
  constexpr char kOld[] = "guardian";
  constexpr char kNew[sizeof kOld] = "warden";
  prctl(PR_SET_NAME, "ncclrun-warden");
  const size_t length = strlen(processName);
  if (length < sizeof kOld - 1) return;
  char* end = processName + length - (sizeof kOld - 1);
  if (strcmp(end, kOld) == 0) memcpy(end, kNew, sizeof kOld);
}

}  // namespace

void endStoppedAgent(pid_t agent, uint32_t leaseMs) {
  const uint64_t deadline = monotonicMs() + leaseMs;
  while (isParent(agent) && isStopped(agent)) {
    if (monotonicMs() > deadline) {
      kill(agent, SIGKILL);
      return;
    }
    poll(nullptr, 0, kSliceMs);
  }
}

WardenLink::WardenLink(int fd) : fd_(fd), warden_(getppid()) {}

void WardenLink::wake() const {
  // Its number is still its own as long as it is our parent.
  if (fd_ >= 0 && getppid() == warden_) kill(warden_, SIGCONT);
}

void WardenLink::pulse(uint32_t leaseMs) {
  const uint64_t now = monotonicMs();
  if (fd_ < 0 || (leaseMs == sentLeaseMs_ && (leaseMs == 0 || now < sentAtMs_ + kPulseMs))) return;
  sentLeaseMs_ = leaseMs;
  sentAtMs_ = now;
  send(fd_, &leaseMs, sizeof leaseMs, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void WardenLink::lost() {
  close(fd_);
  fd_ = -1;
}

int becomeGuardianOfWarden(const Ward& ward, int signals, char* processName) {
  int ends[2];
  // Whole messages: each is the lease that holds from then on.
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return -1;
  const pid_t guardian = fork();
  if (guardian == 0) {
    close(ends[1]);
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // a child does not inherit it
    return ends[0];
  }
  close(ends[0]);
  if (guardian < 0) {
    close(ends[1]);
    return -1;
  }
  close(kAgentSocket);  // the agent must notice when the guardian's end closes
  rename(processName);
  Warden(ward, guardian, ends[1], signals).run();
}

}  // namespace ncclrun::guardian
