// What a server's thread tells the event loop, and how it gets there.
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
  enum class Type { connected, refused, frame, died, closed };
  Type type = Type::closed;
  uint32_t connection = 0;
  pid_t pid = 0;                 // connected
  int waitStatus = -1;           // died, if it was a child of ours
  FrameHeader header = {};       // frame
  std::vector<uint8_t> payload;  // frame
  std::string text;              // closed, refused: why; died: the end of what a child said on stderr
};

// Events on their way to the event loop. One wake-up carries all that gathered meanwhile.
class ServerEvents {
 public:
  // `wake` is called from the server's thread when an event is there and nobody is about to take it.
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
  // The next event; false: there is none. `resume` becomes true where the server may read again.
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
  // The event loop has taken what was there. False: more came meanwhile, for which nobody will wake it.
  bool rest() {
    std::lock_guard lock(mutex_);
    isAwaited_ = !events_.empty();
    return !isAwaited_;
  }
  // More than the event loop should have before it: the server stops reading until half of it is taken.
  bool tooMany() const {
    std::lock_guard lock(mutex_);
    return isFull_;
  }

 private:
  // Bytes of payload, and what each event takes here and on the event loop, however small it is.
  static constexpr size_t kMaxBytes = 8u << 20;
  static constexpr size_t kEventBytes = 512;
  static size_t costOf(const ServerEvent& event) { return kEventBytes + event.payload.size() + event.text.size(); }

  mutable std::mutex mutex_;
  std::deque<ServerEvent> events_;
  size_t bytes_ = 0;
  bool isFull_ = false;
  bool isAwaited_ = false;  // the event loop is woken, and has not said since that it rests
  std::function<void()> wake_;
};

}  // namespace ncclrun::binding
