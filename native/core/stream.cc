#include "core/stream.h"

#include <sched.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/clock.h"
#include "core/thread.h"

namespace ncclrun {

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status Stream::push(std::shared_ptr<Launcher> launcher, Launch&& launch) {
  return push(Item{.launcher = std::move(launcher), .launch = std::move(launch)});
}

Status Stream::push(void (*function)(void*, ncclResult_t), void* argument) {
  return push(Item{.launcher = nullptr, .launch = {}, .function = function, .argument = argument});
}

Status Stream::push(Item&& item) {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      if (Status status = startThread(); !status.ok()) return status;
    }
    if (item.launcher == nullptr) callbacks_++;
    queue_.push_back(std::move(item));
    pushed_.fetch_add(1, std::memory_order_seq_cst);
    wake = mustWake();
    if (wake) asleep_ = false;  // one call is enough
  }
  if (wake) work_.notify_one();
  return {};
}

Status Stream::startThread() {
  try {
    thread_ = ncclrun::startThread("ncclrun-stream", [this] { threadMain(); });
  } catch (const std::system_error& error) {
    return {ncclSystemError, std::string("the stream's thread cannot be started: ") + error.what()};
  }
  return {};
}

void Stream::threadMain() {
  Lock lock(mutex_);
  for (;;) {
    if (running_ || queue_.empty()) {
      if (stopping_ && !running_) return;
      waitForWork(lock);
    } else {
      lent_ = 0;
      runQueue(lock);
      if (queue_.empty() && spinNanoseconds_ != 0 && !awaited_) pollForWork(lock);
    }
  }
}

void Stream::waitForWork(Lock& lock) {
  uint32_t looks = 0;
  while (running_ || (!stopping_ && queue_.empty())) {
    asleep_ = true;
    looksOut_ = lent_ >= kLentOften;
    if (!looksOut_) {
      work_.wait(lock);
      continue;
    }
    const uint64_t seen = pushed_.load(std::memory_order_relaxed);
    work_.wait_for(lock, kLookOutEvery);
    looks = seen == pushed_.load(std::memory_order_relaxed) ? looks + 1 : 0;
    if (looks == kLookOuts) lent_ = looks = 0;
  }
  asleep_ = looksOut_ = false;
}

// The next operation often follows at once: waking a thread costs more than a short look-out.
void Stream::pollForWork(Lock& lock) {
  const uint64_t seen = pushed_.load(std::memory_order_relaxed);
  const uint64_t until = nowNanoseconds() + spinNanoseconds_;
  lock.unlock();
  for (uint32_t round = 1; pushed_.load(std::memory_order_relaxed) == seen; round++) {
    pauseBriefly();
    if (round % 64 != 0) continue;
    if (nowNanoseconds() >= until) break;
    sched_yield();
  }
  lock.lock();
}

// Takes the whole queue and runs it; the lock is given back meanwhile.
void Stream::runQueue(Lock& lock) {
  running_ = true;
  awaited_ = false;
  batch_.swap(queue_);
  callbacks_ = 0;
  lock.unlock();
  for (Item& item : batch_) {
    runItem(item);
    const uint64_t ended = ended_.fetch_add(1, std::memory_order_seq_cst) + 1;
    if (ended < wakeAt_.load(std::memory_order_seq_cst)) continue;
    std::lock_guard relock(mutex_);
    awaited_ = true;
    wakeAt_.store(~0ull, std::memory_order_seq_cst);
    ended_changed_.notify_all();
  }
  const uint64_t spin =
      batch_.back().launcher != nullptr ? batch_.back().launcher->spinNanoseconds() : spinNanoseconds_;
  batch_.clear();
  lock.lock();
  spinNanoseconds_ = spin;
  running_ = false;
}

void Stream::runItem(Item& item) {
  if (item.launcher != nullptr) {
    if (Status status = item.launcher->run(item.launch); !status.ok()) report(status);
    return;
  }
  const Status error = takeError();
  if (!error.ok()) fail(error.code, "%s", error.sentence.c_str());
  item.function(item.argument, error.code);
}

void Stream::report(const Status& status) {
  std::lock_guard lock(mutex_);
  if (error_.ok()) error_ = status;
}

Status Stream::takeError() {
  std::lock_guard lock(mutex_);
  return std::exchange(error_, Status{});
}

Status Stream::synchronize() {
  Lock lock(mutex_);
  const uint64_t target = pushed_.load(std::memory_order_seq_cst);
  while (ended_.load(std::memory_order_seq_cst) < target) {
    // Callbacks are promised an engine thread.
    if (!running_ && callbacks_ == 0) {
      lent_++;
      runQueue(lock);
      continue;
    }
    wakeAt_.store(std::min(wakeAt_.load(std::memory_order_seq_cst), target), std::memory_order_seq_cst);
    if (ended_.load(std::memory_order_seq_cst) >= target) break;
    ended_changed_.wait(lock);
  }
  // While this thread ran the queue, the stream's own slept over what was pushed meanwhile.
  if (!running_ && asleep_ && (stopping_ || !queue_.empty())) work_.notify_one();
  return std::exchange(error_, Status{});
}

}  // namespace ncclrun
