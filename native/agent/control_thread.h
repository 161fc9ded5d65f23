// The one thread of a process that talks to the agent and drives communicators from state to state. Started by the
// first use, never by a constructor (the library is preloaded into every child of a rank); lives as long as the
// process. Takes no signals. A process whose main thread has ended by pthread_exit lives until its last thread ends: so
// there this one, and those of streams (stream.h), end once there is no communicator; the next use starts them again.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <vector>

#include "base/descriptor.h"

namespace ncclrun {

class ControlThread {
 public:
  using Task = std::function<void()>;
  using Step = std::function<bool()>;
  using Handler = std::function<void(short readyEvents)>;

  // Throws std::system_error if there is no eventfd for it.
  static ControlThread& get();

  // From any thread: whether there are communicators.
  void use(bool used);

  // From any thread; throws std::system_error if the thread cannot be started: runs `task` on this thread, after those
  // posted before.
  void post(Task task);
  // From any thread: like post, and waits until `task` has run, but no longer than `timeout`.
  void runSoon(std::chrono::milliseconds timeout, Task task);
  // From any thread: calls `step` on this thread at once and then at growing intervals, up to a millisecond, until it
  // returns true.
  void repeat(Step step);

  // On this thread only: `handler` is called when one of `events` (poll) holds for `descriptor`; events 0 ends that.
  // One descriptor at a time.
  void watch(int descriptor, short events, Handler handler);
  void changeEvents(short events) { watchedEvents_ = events; }

 private:
  ControlThread();
  void run();
  // Without communicators: false where this thread is to end.
  bool staysIdle();
  void wake();
  void runTasks();
  bool runSteps();  // true if one of them ended

  Descriptor wakeup_;  // eventfd
  std::atomic<bool> used_{false};
  std::mutex mutex_;
  std::vector<Task> tasks_;  // guarded by mutex_
  bool runs_ = false;        // guarded by mutex_

  // Of this thread.
  std::vector<Step> steps_;
  long stepNanoseconds_ = 0;
  int watched_ = -1;
  short watchedEvents_ = 0;
  Handler handler_;
};

}  // namespace ncclrun
