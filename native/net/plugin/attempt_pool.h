// The threads that make plugins' calls which may block: a few per process, however many attempts there are. Each has
// attempts of its own, because a handshake stays in the thread that began it, and makes their calls in turn.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "net/plugin/attempt.h"

namespace ncclrun::net::plugin {

class AttemptPool {
 public:
  // A call that takes longer keeps its thread from the other attempts.
  static constexpr uint64_t kLongCall = 50'000'000;  // ns
  // So many threads at once; one more each time that all of them are in a long call and an attempt waits.
  static constexpr size_t kThreads = 8, kMaxThreads = 32;

  // Each kind has a pool of its own: of a plugin that blocks until the other side is there, none can keep the others
  // waiting.
  static AttemptPool& of(Attempt::Kind kind);
  AttemptPool(const AttemptPool&) = delete;
  AttemptPool& operator=(const AttemptPool&) = delete;

  // An error: no thread can be started.
  Status add(const std::shared_ptr<Attempt::State>& attempt);
  // An attempt has waited for a thread.
  void relieve();

 private:
  struct Worker;
  AttemptPool() = default;
  // With the mutex held.
  Status startWorker();
  void run(Worker& worker);
  // Gives it one more attempt. False: it has none, and ends.
  bool take(Worker& worker);

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Attempt::State>> waiting_;
  std::vector<std::shared_ptr<Worker>> workers_;
};

}  // namespace ncclrun::net::plugin
