// ncclrun-guardian, and its warden: started by the agent with a socket as descriptor 3, it starts the ranks of one
// host, hands on what they write, and ends them and all that descends from them when told so, when the agent goes away
// or falls silent.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "guardian/guardian.h"
#include "guardian/warden.h"

namespace {

using ncclrun::guardian::kAgentSocket;

// The ranks shall find signals as a login shell leaves them, whatever our parents ignored. We ourselves read of our
// children from a descriptor, and heed nothing else: a resource manager sends its SIGTERM to every process of a job,
// and what follows from it is for the launcher to say. Whoever wants us to end ends the agent. -1: there is no
// signalfd.
int takeOverSignals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);  // refused for KILL and STOP
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  return signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

int childSignals[2] = {-1, -1};  // a pipe

void noteChild(int) {
  const int before = errno;
  [[maybe_unused]] const ssize_t wrote = write(childSignals[1], "", 1);
  errno = before;
}

// A descriptor that is readable when a child may have died, where the system refuses signalfd: a handler writes to a
// pipe. Signals reach a handler in any process, so unlike signalfd the pipe must not be shared with the warden. -1: no
// pipe can be made either.
int pipeForChildren() {
  if (pipe2(childSignals, O_CLOEXEC | O_NONBLOCK) < 0) return -1;
  struct sigaction action = {};
  action.sa_handler = noteChild;
  action.sa_flags = SA_RESTART;
  sigaction(SIGCHLD, &action, nullptr);
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  sigprocmask(SIG_UNBLOCK, &ours, nullptr);
  return childSignals[0];
}

// Nothing that we inherited reaches a rank, and 0, 1 and 2 are taken so that no pipe gets these numbers.
void takeOverDescriptors() {
  for (int fd = 0; fd < 3; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
  }
  fcntl(kAgentSocket, F_SETFD, FD_CLOEXEC);
  if (syscall(SYS_close_range, kAgentSocket + 1, ~0u, 0) == 0) return;
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  for (int fd = kAgentSocket + 1; fd < static_cast<int>(files.rlim_cur) && fd < 65536; ++fd) close(fd);
}

}  // namespace

// Arguments, none of which is needed:
//   the agent's runtime directory, ours to remove even if no order ever comes;
//   the lease until an order comes, in milliseconds; 0 or none: no lease;
//   "agent" if the agent is a process of its own, which is to end when it is silent for longer than the lease.
int main(int argc, char** argv) {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(kAgentSocket, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_STREAM) {
    dprintf(2,
            "ncclrun-guardian: descriptor 3 is not a stream socket; this program is started by ncclrun's agent, not by "
            "hand\n");
    return 2;
  }
  takeOverDescriptors();
  [[maybe_unused]] const int moved = chdir("/");  // so that no file system is in use because of us
  setsid();                                       // a terminal's ^C and ^Z are the launcher's to answer
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
    perror("ncclrun-guardian: cannot become the reaper of orphans (PR_SET_CHILD_SUBREAPER)");
    return 2;
  }
  int signals = takeOverSignals();
  const char* runtimeDirectory = argc > 1 ? argv[1] : "";
  const uint32_t leaseMs = argc > 2 ? static_cast<uint32_t>(strtoul(argv[2], nullptr, 10)) : 0;
  const bool endsAgent = argc > 3 && strcmp(argv[3], "agent") == 0;
  const ncclrun::guardian::Ward ward = {
      .runtimeDirectory = runtimeDirectory, .agent = endsAgent ? getppid() : 0, .leaseMs = leaseMs};
  const int warden = ncclrun::guardian::becomeGuardianOfWarden(ward, signals, argv[0]);
  if (signals < 0) signals = pipeForChildren();
  if (signals < 0) {
    perror("ncclrun-guardian: neither signalfd nor pipe2 reports the ranks' exits");
    return 2;
  }
  return static_cast<int>(ncclrun::guardian::Guardian(kAgentSocket, warden, signals, ward, leaseMs).run());
}
