#include "base/detached_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace ncclrun {
namespace {

constexpr size_t kChildStackBytes = 64 * 1024;
constexpr int kInput = 3;
constexpr int kBeyondGiven = 10;  // where the descriptors wait while 0 to 3 are filled
constexpr int kMaxDescriptors = 65536;

struct ChildStack {
  alignas(16) char bytes[kChildStackBytes];
  void* top() { return bytes + kChildStackBytes; }
};

struct Start {
  const char* path;
  char* const* words;
  char* const* environment;
  int input;
  int standardError;
  const cpu_set_t* processors;
  size_t processorBytes;
  ChildStack* stack;  // of the process itself
  int error = 0;
};

// Both run in our memory while we stand still (CLONE_VM | CLONE_VFORK): system calls only, and nothing is released.

void closeOthers() {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, kInput + 1, ~0U, 0) == 0) return;
#endif
  for (int number = kInput + 1; number < kMaxDescriptors; number++) close(number);
}

int runProcess(void* given) {
  auto& start = *static_cast<Start*>(given);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; number++) sigaction(number, &usual, nullptr);
  signal(SIGUSR1, SIG_IGN);  // until Node blocks it
  setsid();
  if (start.processorBytes > 0) sched_setaffinity(0, start.processorBytes, start.processors);
  const int input = fcntl(start.input, F_DUPFD, kBeyondGiven);
  const int standardError = fcntl(start.standardError, F_DUPFD, kBeyondGiven);
  close(0);
  const int null = open("/dev/null", O_RDWR);
  if (input < 0 || standardError < 0 || null != 0 || dup2(null, 1) < 0 || dup2(standardError, 2) < 0 ||
      dup2(input, kInput) < 0 || chdir("/") != 0) {
    start.error = errno == 0 ? EBADF : errno;
    _exit(1);
  }
  closeOthers();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(start.path, start.words, start.environment);
  start.error = errno;
  _exit(1);
}

// Ends as soon as the process runs, which so loses its parent.
int runBetween(void* given) {
  auto& start = *static_cast<Start*>(given);
  if (clone(runProcess, start.stack->top(), CLONE_VM | CLONE_VFORK | SIGCHLD, given) < 0) start.error = errno;
  _exit(0);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));  // execve changes none of it
  all.push_back(nullptr);
  return all;
}

}  // namespace

int startDetached(const DetachedProcess& process) {
  const std::vector<char*> words = pointers(process.words);
  const std::vector<char*> environment = pointers(process.environment);
  std::vector<cpu_set_t> processors(16);  // 16384 of them
  size_t processorBytes = processors.size() * sizeof(cpu_set_t);
  if (sched_getaffinity(getppid(), processorBytes, processors.data()) < 0) processorBytes = 0;
  const auto between = std::make_unique<ChildStack>();
  const auto own = std::make_unique<ChildStack>();
  Start start = {.path = process.words.front().c_str(),
                 .words = words.data(),
                 .environment = environment.data(),
                 .input = process.input,
                 .standardError = process.standardError,
                 .processors = processors.data(),
                 .processorBytes = processorBytes,
                 .stack = own.get()};
  // A handler of the program's must not run in the memory that we share.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Without a signal at its end, it is no child that an ordinary wait finds.
  const pid_t pid = clone(runBetween, between->top(), CLONE_VM | CLONE_VFORK, &start);
  const int failed = pid < 0 ? errno : 0;
  while (pid > 0 && waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return failed != 0 ? failed : start.error;
}

}  // namespace ncclrun
