// Orders the launches of one communicator, which share its connections: each follows the one before, whatever its
// stream, captured or not. A launch of kernels only is followed by no event, which would cost a driver call each: its
// blocks increment a counter as they end, and a stream that has to wait waits for the counter. Once an operation has
// been captured, whose replays the engine does not see, events order all launches.
#pragma once
#include <map>
#include <mutex>
#include <optional>

#include "dl/gpu.h"
#include "dl/gpu_memory.h"

namespace ncclrun::cuda {

// Where a launch goes: the capture that it is part of, and a stream.
struct Capture {
  uint64_t id = 0;                // 0: none
  unsigned long long stream = 0;  // in a capture its handle, else its number, which never comes again
};

class LaunchOrder {
 public:
  explicit LaunchOrder(const Gpu& gpu) : gpu_(gpu) {}
  ~LaunchOrder();
  LaunchOrder(const LaunchOrder&) = delete;
  LaunchOrder& operator=(const LaunchOrder&) = delete;

  // Its memory is zeroed by the stream, which has to be waited for.
  Status make(Stream stream);
  // Where a launch's blocks count themselves; null: they need not, because it is captured.
  uint32_t* count(const Capture& capture) const {
    return capture.id != 0 ? nullptr : reinterpret_cast<uint32_t*>(count_.pointer());
  }

  // The capture that the stream is part of. ncclInvalidUsage if that has failed.
  static Status captureOf(Stream stream, Capture& out);
  // Before and after each launch on the stream. `blocks`: that count themselves, of all launches so far, modulo 2^32;
  // none: there is something else that the next launch has to wait for.
  Status before(Stream stream, Capture& capture);
  Status after(Stream stream, const Capture& capture, std::optional<uint32_t> blocks);

  // Between before() and the launch: notes all launches before; false: that cannot be, because some were captured.
  // passedMark(): they have ended.
  bool mark(Stream stream, const Capture& capture);
  bool passedMark() const;

  bool everCaptured() const { return everCaptured_; }
  // kSuccess when all has ended that was not captured; kNotReady; what went wrong on the GPU. By any thread.
  Result query();
  void await();

 private:
  Status recordCounted();

  const Gpu gpu_;
  std::mutex mutex_;          // of all that follows
  Stream waiting_ = nullptr;  // for the count; made when it is needed
  Memory count_;
  uint32_t launched_ = 0;   // blocks to wait for, if `counted_`
  bool counted_ = false;    // the last launch did; else `last_` was recorded after it
  Event marked_ = nullptr;  // after the launches before the last mark; made when it is needed
  Event last_ = nullptr;    // after the last launch that was not captured
  Capture lastCapture_;     // where it went
  bool everCaptured_ = false;
  // What a capture's last launch went to.
  struct Captured {
    unsigned long long stream = 0;
    GraphNode node = nullptr;
    GraphNode record = nullptr;  // records `last_` after that node
  };
  std::map<uint64_t, Captured> captured_;  // by the captures' ids, which never come again and grow
};

}  // namespace ncclrun::cuda
