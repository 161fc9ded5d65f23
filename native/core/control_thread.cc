#include "core/control_thread.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <future>
#include <memory>
#include <system_error>

#include "core/fork.h"
#include "core/thread.h"

namespace ncclrun {
namespace {
constexpr long kFirstStepNanoseconds = 20'000;
constexpr long kLastStepNanoseconds = 1'000'000;
}  // namespace

ControlThread& ControlThread::get() {
  static auto& thread = *new ControlThread;  // never destroyed: it runs until the process is gone
  return thread;
}

ControlThread::ControlThread() : wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wakeup_.valid()) throw std::system_error(errno, std::generic_category(), "eventfd of the control thread");
  watchForks();
  std::thread thread = startThread("ncclrun-control", [this] { run(); });
  id_ = thread.get_id();
  thread.detach();
}

void ControlThread::post(Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake();
}

void ControlThread::runSoon(std::chrono::milliseconds patience, Task task) {
  if (std::this_thread::get_id() == id_) return task();
  const auto done = std::make_shared<std::promise<void>>();
  post([done, task = std::move(task)] {
    task();
    done->set_value();
  });
  done->get_future().wait_for(patience);
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

void ControlThread::run() {
  for (;;) {
    pollfd polled[2] = {{wakeup_.get(), POLLIN, 0}, {watched_, watchedEvents_, 0}};
    const timespec pause = {0, stepNanoseconds_};
    const int ready = ppoll(polled, 2, steps_.empty() ? nullptr : &pause, nullptr);
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
