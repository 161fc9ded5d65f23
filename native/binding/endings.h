// How JavaScript learns that operations of a communicator have ended: the call that begins one says so if it ended
// meanwhile; the communicator's watcher is notified of the others, on the event loop.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "ncclrun.h"

namespace ncclrun::binding {

// Of one communicator, whose operations end in the order in which they begin. Of the event loop, but for the callback.
class Endings {
 public:
  struct Failure {
    uint64_t number;
    ncclResult_t result;
    std::string sentence;
  };

  // Called from any thread, at most once per want().
  std::function<void()> wake;

  // After a brief operation was queued on the stream: runs it on this thread for a while.
  // ncclInProgress: it has not ended, begin() has to follow. Else its result.
  ncclResult_t tryNow(ncclrunStream_t stream);
  // After an operation was queued on the stream: its number, from 1. `queued` is how that went.
  uint64_t begin(ncclrunStream_t stream, ncclResult_t queued);
  // Up to which number all have ended.
  uint64_t ended() const { return ended_.load(std::memory_order_seq_cst); }
  bool allEnded() const { return ended() == begun_; }
  // False: all have ended; whether somebody will be woken nevertheless is open.
  bool want();
  // True if there are failures that have not been reported.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Failures of the operations up to this number, each reported once.
  std::vector<Failure> takeFailures(uint64_t upTo) { return take(0, upTo); }
  std::vector<Failure> takeFailure(uint64_t number) { return take(number, number); }

 private:
  // How long a call polls for its peers: about as long as it takes to wake a thread of the engine, and by it the event
  // loop. With less, a rank that came too late once would find the next one asleep, and so on. After each time
  // in vain half as long, so that peers that are always late do not hold up the event loop.
  static constexpr uint64_t kTimeoutNanoseconds = 200'000;
  static constexpr uint64_t kMinNanoseconds = 1'000;

  static void end(void* endings, ncclResult_t result);
  void note(Failure&& failure);
  std::vector<Failure> take(uint64_t from, uint64_t to);

  uint64_t begun_ = 0;
  uint64_t timeoutNanoseconds_ = kTimeoutNanoseconds;
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> wanted_{false};
  std::mutex mutex_;
  std::vector<Failure> failures_;
  std::atomic<bool> failed_{false};
};

}  // namespace ncclrun::binding
