#include "agent/control_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <future>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/fork.h"
#include "base/thread.h"
#include "host/stream.h"

namespace ncclrun {
namespace {
constexpr long kFirstStepNanoseconds = 20'000;
constexpr long kLastStepNanoseconds = 1'000'000;
// How often a process without communicators looks whether its main thread lives.
constexpr timespec kIdlePause = {.tv_sec = 0, .tv_nsec = 500'000'000};

thread_local bool isControlThread = false;

// Of a process whose main thread has ended while others live, its first line of /proc says that it is a zombie.
bool mainThreadEnded() {
  const Descriptor file(open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t bytes = file.valid() ? read(file.get(), text, sizeof text) : -1;
  const std::string_view stat(text, bytes > 0 ? size_t(bytes) : 0);
  const size_t name = stat.rfind(')');
  return name != std::string_view::npos && name + 2 < stat.size() && stat[name + 2] == 'Z';
}
}  // namespace

ControlThread& ControlThread::get() {
  static auto& thread = *new ControlThread;  // never destroyed: it runs until the process is gone
  return thread;
}

ControlThread::ControlThread() : wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wakeup_.valid()) throw std::system_error(errno, std::generic_category(), "eventfd of the control thread");
  watchForks();
}

void ControlThread::use(bool used) {
  used_.store(used, std::memory_order_relaxed);
  if (!used) wake();
}

void ControlThread::post(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (!runs_) startThread("ncclrun-control", [this] { run(); }).detach();
    runs_ = true;
    tasks_.push_back(std::move(task));
  }
  wake();
}

void ControlThread::runSoon(std::chrono::milliseconds timeout, Task task) {
  if (isControlThread) return task();
  const auto done = std::make_shared<std::promise<void>>();
  post([done, task = std::move(task)] {
    task();
    done->set_value();
  });
  done->get_future().wait_for(timeout);
}

void ControlThread::repeat(Step step) {
  post([this, step = std::move(step)] {
    if (step()) return;
    steps_.push_back(step);
    stepNanoseconds_ = kFirstStepNanoseconds;
  });
}

void ControlThread::watch(int descriptor, short events, Handler handler) {
  watched_ = events == 0 ? -1 : descriptor;
  watchedEvents_ = events;
  handler_ = std::move(handler);
}

void ControlThread::wake() {
  const uint64_t one = 1;
  while (write(wakeup_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void ControlThread::runTasks() {
  uint64_t count;
  while (read(wakeup_.get(), &count, sizeof count) < 0 && errno == EINTR) {
  }
  std::vector<Task> tasks;
  {
    std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (Task& task : tasks) {
    task();
    task = nullptr;  // what it holds is released in order
  }
}

bool ControlThread::runSteps() {
  const auto ended = std::remove_if(steps_.begin(), steps_.end(), [](const Step& step) { return step(); });
  const bool any = ended != steps_.end();
  steps_.erase(ended, steps_.end());
  return any;
}

bool ControlThread::staysIdle() {
  if (!mainThreadEnded()) return true;
  Stream::endIdleThreads();
  std::lock_guard lock(mutex_);
  runs_ = used_.load(std::memory_order_relaxed) || !tasks_.empty();
  return runs_;
}

void ControlThread::run() {
  isControlThread = true;
  for (;;) {
    const bool idle = steps_.empty() && !used_.load(std::memory_order_relaxed);
    pollfd polled[2] = {{wakeup_.get(), POLLIN, 0}, {watched_, watchedEvents_, 0}};
    const timespec pause = {0, stepNanoseconds_};
    const int ready = ppoll(polled, 2, idle ? &kIdlePause : steps_.empty() ? nullptr : &pause, nullptr);
    if (ready == 0 && idle && !staysIdle()) return;
    if (ready > 0 && polled[0].revents != 0) runTasks();
    // A task may have changed what is watched; then the event is stale and comes again if it still holds.
    if (ready > 0 && polled[1].revents != 0 && polled[1].fd == watched_) {
      const Handler handler = handler_;  // it may replace itself
      handler(polled[1].revents);
    }
    if (steps_.empty()) continue;
    stepNanoseconds_ = runSteps() ? kFirstStepNanoseconds : std::min(stepNanoseconds_ * 2, kLastStepNanoseconds);
  }
}

}  // namespace ncclrun
