// A thread that moves what sockets have room or data for, asleep while they have neither.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"

namespace ncclrun::net {

// One socket's work.
class HelperTask {
 public:
  // Moves what can be moved without blocking. On the helper's thread.
  virtual void advance() = 0;

 protected:
  ~HelperTask() = default;
};

class HelperThread {
 public:
  static Status start(std::unique_ptr<HelperThread>& out);
  ~HelperThread();
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;

  // Advances `task` when its descriptor has room or data, and after wake(); until remove() returns. Any thread.
  Status add(int descriptor, HelperTask& task);
  void remove(int descriptor, HelperTask& task);
  // There is something new to do. Any thread; cheap while the helper is at work.
  void wake();

 private:
  HelperThread() = default;
  void run();

  Descriptor epoll_, wake_;
  std::mutex mutex_;  // held while tasks run
  std::vector<HelperTask*> tasks_;
  std::atomic<bool> wanted_{false};
  std::atomic<bool> asleep_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace ncclrun::net
