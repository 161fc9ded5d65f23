#include "aggregator/heartbeats.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "base/thread.h"

namespace ncclrun::aggregator {

Heartbeats::~Heartbeats() {
  {
    std::lock_guard lock(mutex_);
    isOver_ = true;
  }
  ends_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Status Heartbeats::add(const void* who, std::function<void()> beat) {
  std::lock_guard lock(mutex_);
  try {
    if (!thread_.joinable()) thread_ = startThread("ncclrun-beats", [this] { run(); });
  } catch (const std::system_error& refused) {
    return {ncclSystemError, std::string("heartbeats to the aggregator: ") + refused.what()};
  }
  beats_[who] = std::move(beat);
  return {};
}

void Heartbeats::remove(const void* who) {
  std::lock_guard lock(mutex_);
  beats_.erase(who);
}

void Heartbeats::run() {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, std::chrono::nanoseconds(interval_), [this] { return isOver_; })) {
    for (const auto& [who, beat] : beats_) beat();
  }
}

}  // namespace ncclrun::aggregator
