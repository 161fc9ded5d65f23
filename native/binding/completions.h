// Reports to JavaScript which operations of a communicator have ended. The call that begins an operation returns 0 if
// it has ended meanwhile; the event loop notifies the communicator's watcher of all others.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "ncclrun.h"

namespace ncclrun::binding {

// Completions of one communicator, whose operations end in the order in which they begin. Used on the event loop,
// except for the stream's callback.
class Completions {
 public:
  struct Failure {
    uint64_t number;
    ncclResult_t result;
    std::string sentence;
  };

  // Called from any thread, at most once per requestWake().
  std::function<void()> wake;

  // Called after a brief operation was queued on the stream: runs it on this thread for a limited time. Returns its
  // result, or ncclInProgress if it has not ended, after which the caller calls begin().
  ncclResult_t runNow(ncclrunStream_t stream);
  // Called after an operation was queued on the stream. Returns its number, from 1. `queued`: result of queueing it.
  uint64_t begin(ncclrunStream_t stream, ncclResult_t queued);
  // Number up to which all operations have ended.
  uint64_t ended() const { return ended_.load(std::memory_order_seq_cst); }
  bool allEnded() const { return ended() == begun_; }
  // The event loop has been told of all operations up to this number.
  void reported(uint64_t upTo) { reported_ = upTo; }
  // A later one that ended at once would be known before an earlier one that has ended, too.
  bool allReported() const { return reported_ == begun_; }
  // Requests one call of wake() when the next operation ends. Returns false if all have ended; wake() may be called
  // even then.
  bool requestWake();
  // True if there are failures that have not been reported.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Returns the failures of the operations up to this number, each once.
  std::vector<Failure> takeFailures(uint64_t upTo) { return take(0, upTo); }
  std::vector<Failure> takeFailure(uint64_t number) { return take(number, number); }

 private:
  // How long a call polls for its peers: about as long as it takes to wake a thread of the engine, and by it the event
  // loop. With a shorter time a rank that was late once would find its peer asleep, wait for it, and so be late again.
  // Each timeout halves the time, so that peers that are always late do not block the event loop.
  static constexpr uint64_t kTimeoutNanoseconds = 200'000;
  static constexpr uint64_t kMinNanoseconds = 1'000;

  static void end(void* completions, ncclResult_t result);
  void addFailure(Failure&& failure);
  std::vector<Failure> take(uint64_t from, uint64_t to);

  uint64_t begun_ = 0;
  uint64_t reported_ = 0;
  uint64_t timeoutNanoseconds_ = kTimeoutNanoseconds;
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> wakeRequested_{false};
  std::mutex mutex_;
  std::vector<Failure> failures_;
  std::atomic<bool> failed_{false};
};

}  // namespace ncclrun::binding
