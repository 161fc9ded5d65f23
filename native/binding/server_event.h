// What a server's thread tells the event loop, and how it gets there.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/frame.h"

namespace ncclrun::binding {

struct ServerEvent {
  enum class Type { connected, refused, frame, died, closed };
  Type type;
  uint32_t connection;
  pid_t pid = 0;                 // connected
  int waitStatus = -1;           // died, if it was a child of ours
  FrameHeader header = {};       // frame
  std::vector<uint8_t> payload;  // frame
  std::string text;              // closed, refused: why; died: the end of what a child said on stderr
};

// Events on their way to the event loop. One wake-up carries all that gathered meanwhile.
class ServerEvents {
 public:
  // `wake` is called from the server's thread when the first event of a batch is there.
  explicit ServerEvents(std::function<void()> wake) : wake_(std::move(wake)) {}

  void add(ServerEvent event) {
    std::unique_lock lock(mutex_);
    bytes_ += event.payload.size();
    events_.push_back(std::move(event));
    const bool first = events_.size() == 1;
    lock.unlock();
    if (first) wake_();
  }
  // `resume` says whether the server stopped reading because of these.
  std::vector<ServerEvent> take(bool& resume) {
    std::lock_guard lock(mutex_);
    resume = bytes_ > kMaxBytes;
    bytes_ = 0;
    return std::exchange(events_, {});
  }
  // More than the event loop should have before it: the server then stops reading.
  bool tooMany() const {
    std::lock_guard lock(mutex_);
    return bytes_ > kMaxBytes;
  }

 private:
  static constexpr size_t kMaxBytes = 64u << 20;
  mutable std::mutex mutex_;
  std::vector<ServerEvent> events_;
  size_t bytes_ = 0;
  std::function<void()> wake_;
};

}  // namespace ncclrun::binding
