// Threads that move what sockets have room or data for, asleep while they have neither. A process has each of them
// once: its communicators share them, so that their number does not grow with that of the communicators.
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
  // Moves what can be moved without blocking, of a long transfer a part; it then wakes the helper. On the helper's
  // thread.
  virtual void advance() = 0;

 protected:
  ~HelperTask() = default;
};

class HelperThread {
 public:
  // One communicator's tasks.
  struct Share {
    explicit Share(uint64_t number) : number(number) {}
    const uint64_t number;  // from 1
    std::mutex mutex;       // held while its tasks run
    std::vector<HelperTask*> tasks;
    std::atomic<bool> wanted{false};
  };

  // The process's thread of that index, which ends with the last who holds it.
  static Status of(uint32_t index, std::shared_ptr<HelperThread>& out);
  ~HelperThread();
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;

  std::shared_ptr<Share> open();
  void close(const Share& share);
  // Runs the share's tasks when the descriptor has room or data.
  Status watch(int descriptor, const Share& share);
  void unwatch(int descriptor);
  // Some share is wanted. Cheap while the thread is at work.
  void wake();

 private:
  HelperThread() = default;
  Status start();
  void run();

  Descriptor epoll_, wake_;
  std::mutex mutex_;  // of shares_; never held while tasks run
  std::vector<std::shared_ptr<Share>> shares_;
  uint64_t opened_ = 0;
  std::atomic<bool> wanted_{false};
  std::atomic<bool> asleep_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

// What one communicator has of such a thread.
class Helper {
 public:
  static Status start(uint32_t index, std::unique_ptr<Helper>& out);
  ~Helper() { thread_->close(*share_); }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Advances `task` when its descriptor has room or data, and after wake(); until remove() returns. Any thread.
  Status add(int descriptor, HelperTask& task);
  void remove(int descriptor, HelperTask& task);
  // There is something new to do. Any thread.
  void wake();

 private:
  explicit Helper(std::shared_ptr<HelperThread> thread) : thread_(std::move(thread)), share_(thread_->open()) {}

  const std::shared_ptr<HelperThread> thread_;
  const std::shared_ptr<HelperThread::Share> share_;
};

}  // namespace ncclrun::net
