// Events that a server's thread reports to the event loop, and their queue.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/frame.h"

namespace ncclrun::binding {

struct ServerEvent {
  enum class Type { connected, refused, frame, died, closed, caughtUp };
  Type type = Type::closed;
  uint32_t connection = 0;
  pid_t pid = 0;                 // connected
  int waitStatus = -1;           // died, if it was a child of ours
  FrameHeader header = {};       // frame
  std::vector<uint8_t> payload;  // frame
  std::string text;              // closed, refused: reason; died: end of a child's stderr
};

// Queue of events for the event loop, which takes all pending events at one wake-up.
class ServerEvents {
 public:
  // The server's thread calls `wake` when an event arrives while the event loop rests.
  explicit ServerEvents(std::function<void()> wake) : wake_(std::move(wake)) {}

  void add(ServerEvent event) {
    std::unique_lock lock(mutex_);
    bytes_ += costOf(event);
    isFull_ = isFull_ || bytes_ > kMaxBytes;
    events_.push_back(std::move(event));
    const bool first = !isAwaited_;
    isAwaited_ = true;
    lock.unlock();
    if (first) wake_();
  }
  // Takes the next event; returns false if there is none. Sets `resume` if the server may read again.
  bool take(ServerEvent& event, bool& resume) {
    std::lock_guard lock(mutex_);
    if (events_.empty()) return false;
    event = std::move(events_.front());
    events_.pop_front();
    bytes_ -= costOf(event);
    if (isFull_ && bytes_ <= kMaxBytes / 2) {
      isFull_ = false;
      resume = true;
    }
    return true;
  }
  // Called when the event loop has taken all events. Returns false if more have arrived meanwhile: then no wake-up
  // follows, and the event loop must take them.
  bool rest() {
    std::lock_guard lock(mutex_);
    isAwaited_ = !events_.empty();
    return !isAwaited_;
  }
  // True if too many events are pending: the server stops reading until the event loop has taken half of them.
  bool isFull() const {
    std::lock_guard lock(mutex_);
    return isFull_;
  }

 private:
  // Maximum of pending bytes, and the overhead of each event, however small it is.
  static constexpr size_t kMaxBytes = 8u << 20;
  static constexpr size_t kEventBytes = 512;
  static size_t costOf(const ServerEvent& event) { return kEventBytes + event.payload.size() + event.text.size(); }

  mutable std::mutex mutex_;
  std::deque<ServerEvent> events_;
  size_t bytes_ = 0;
  bool isFull_ = false;
  bool isAwaited_ = false;  // the event loop has been woken and has not called rest() since
  std::function<void()> wake_;
};

}  // namespace ncclrun::binding
