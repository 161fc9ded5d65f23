#include "guardian/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "guardian/program.h"

namespace ncclrun::guardian {
namespace {

constexpr size_t kStackBytes = 64 << 10;

// What the child reads, and where it leaves its errno: it shares our memory until the program runs (CLONE_VM), while we
// wait (CLONE_VFORK).
struct Child {
  const RankOrder& order;
  const Program& program;
  const std::vector<unsigned long>& cpuMask;
  const rlimit& files;
  pid_t guardian;
  int streams[3];
  int pmi;  // -1: none
  int error = 0;
  SpawnStep step = SpawnStep::session;
};

// The rank's end of its PMI connection gets its number. Where a limit forbids it, only MPI programs miss it.
void passPmi(int fd) {
  if (fd == kPmiDescriptor)
    fcntl(fd, F_SETFD, 0);
  else
    dup2(fd, kPmiDescriptor);
}

// Runs between clone and exec, on its own stack, in our memory: system calls only.
void becomeRank(Child& child) {
  child.step = SpawnStep::session;
  if (setsid() < 0) return;
  // Should somebody kill the guardian, the kernel ends the rank. It may have died before this call, hence the second
  // look.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return;
  if (getppid() != child.guardian) _exit(127);
  if (setrlimit(RLIMIT_NOFILE, &child.files) < 0) return;

  child.step = SpawnStep::binding;
  const std::vector<unsigned long>& mask = child.cpuMask;
  if (!mask.empty() &&
      sched_setaffinity(0, mask.size() * sizeof mask[0], reinterpret_cast<const cpu_set_t*>(mask.data())) < 0) {
    return;
  }

  child.step = SpawnStep::directory;
  if (child.order.workingDirectory[0] != 0 && chdir(child.order.workingDirectory) < 0) return;

  child.step = SpawnStep::streams;
  for (int stream = 0; stream < 3; ++stream) {
    if (dup2(child.streams[stream], stream) < 0) return;  // every other descriptor of ours closes on exec
  }
  if (child.pmi >= 0) passPmi(child.pmi);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);

  child.step = SpawnStep::exec;
  child.program.execute();
}

int childMain(void* argument) {
  Child& child = *static_cast<Child*>(argument);
  becomeRank(child);
  child.error = errno;
  _exit(127);
}

std::vector<unsigned long> cpuMask(const std::vector<uint32_t>& cpus) {
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (const uint32_t cpu : cpus) {
    if (cpu / kBits >= mask.size()) mask.resize(cpu / kBits + 1);
    mask[cpu / kBits] |= 1ul << (cpu % kBits);
  }
  return mask;
}

void closeAll(std::initializer_list<int> descriptors) {
  for (const int fd : descriptors) {
    if (fd >= 0) close(fd);
  }
}

}  // namespace

Spawner::Spawner(size_t ranks) {
  nullDevice_ = open("/dev/null", O_RDWR | O_CLOEXEC);
  // Larger pipes mean fewer wake-ups; but one user's pipes beyond 64 MiB in all would get the smallest size from the
  // kernel.
  pipeBytes_ = ranks <= 64 ? 256 << 10 : 0;
  getrlimit(RLIMIT_NOFILE, &ourFiles_);
  const rlim_t needed = ranks * 4 + 64;
  if (ourFiles_.rlim_cur < needed) {
    const rlimit more = {needed < ourFiles_.rlim_max ? needed : ourFiles_.rlim_max, ourFiles_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &more);
  }
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  stack_ = memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

Spawner::~Spawner() {
  closeAll({nullDevice_});
  if (stack_ != nullptr) munmap(stack_, kStackBytes);
}

Spawned Spawner::spawn(const RankOrder& order) {
  int input[2] = {nullDevice_, -1};
  int output[2] = {-1, -1};
  int error[2] = {-1, -1};
  int pmi[2] = {-1, -1};  // ours, and the rank's
  if (nullDevice_ < 0 || (order.stdinPipe && pipe2(input, O_CLOEXEC) < 0) || pipe2(output, O_CLOEXEC) < 0 ||
      (!order.mergeStderr && pipe2(error, O_CLOEXEC) < 0) ||
      (order.pmi && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pmi) < 0)) {
    const int reason = errno;
    closeAll({order.stdinPipe ? input[0] : -1, input[1], output[0], output[1], error[0], error[1], pmi[0], pmi[1]});
    return {.error = reason, .step = SpawnStep::streams};
  }
  if (pipeBytes_ > 0) {  // refusal is no harm
    fcntl(output[0], F_SETPIPE_SZ, pipeBytes_);
    if (error[0] >= 0) fcntl(error[0], F_SETPIPE_SZ, pipeBytes_);
  }

  const Program program(order);
  const std::vector<unsigned long> mask = cpuMask(order.cpus);
  Child child = {.order = order,
                 .program = program,
                 .cpuMask = mask,
                 .files = ourFiles_,
                 .guardian = getpid(),
                 .streams = {input[0], output[1], order.mergeStderr ? output[1] : error[1]},
                 .pmi = pmi[1]};
  int reason = ENOMEM;
  pid_t pid = -1;
  if (stack_ != nullptr) {
    pid = clone(childMain, stack_ + kStackBytes, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
    reason = errno;
  }
  closeAll({order.stdinPipe ? input[0] : -1, output[1], error[1], pmi[1]});
  if (pid > 0 && child.error == 0) {
    for (const int fd : {input[1], output[0], error[0], pmi[0]}) {
      if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    return {
        .pid = pid, .standardInput = input[1], .standardOutput = output[0], .standardError = error[0], .pmi = pmi[0]};
  }
  closeAll({input[1], output[0], error[0], pmi[0]});
  if (pid < 0) return {.error = reason, .step = SpawnStep::fork};
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {.error = child.error, .step = child.step};
}

}  // namespace ncclrun::guardian
