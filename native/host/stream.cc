#include "host/stream.h"

#include <sched.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"

namespace ncclrun {
namespace {

// One operation and its callback: nobody looks at the clock between them.
constexpr size_t kBrief = 2;

// An operation that follows later than this follows a computation, which needs the core.
constexpr uint64_t kMaxPollNanoseconds = 50'000;

// Never destroyed: default streams live until the process ends.
struct AllStreams {
  std::mutex mutex;
  std::set<Stream*> streams;
};
AllStreams& allStreams() {
  static auto& streams = *new AllStreams;
  return streams;
}

}  // namespace

Stream::Stream() {
  std::lock_guard lock(allStreams().mutex);
  allStreams().streams.insert(this);
}

void Stream::endIdleThreads() {
  std::lock_guard lock(allStreams().mutex);
  for (Stream* const stream : allStreams().streams) {
    std::lock_guard inner(stream->mutex_);
    stream->endsIdle_ = true;
    stream->work_.notify_all();
  }
}

Stream::~Stream() {
  {
    std::lock_guard lock(allStreams().mutex);
    allStreams().streams.erase(this);
  }
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
    if (!thread_.joinable() || exited_) {
      NCCLRUN_TRY(startThread());
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
  if (thread_.joinable()) thread_.join();
  exited_ = false;
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
    if (handed_) {
      handed_ = false;
      lock.unlock();
      borrowed_->finish();
      lock.lock();
      endBatch();
    } else if (running_ || queue_.empty()) {
      if (stopping_ && !running_) return;
      if (endsIdle_ && !running_) {
        exited_ = true;
        return;
      }
      waitForWork(lock);
    } else {
      callerRuns_ = 0;
      owed_ = false;
      runQueue(lock);
      if (queue_.empty() && spinNanoseconds_ != 0 && !awaited_ && !callerAlwaysRuns_) pollForWork(lock);
    }
  }
}

void Stream::waitForWork(Lock& lock) {
  uint32_t looks = 0;
  while (!handed_ && (running_ || (!stopping_ && !endsIdle_ && queue_.empty()))) {
    asleep_ = true;
    polls_ = !callerAlwaysRuns_ && callerRuns_ >= kCallerRunsOften;
    if (!polls_) {
      work_.wait(lock);
      continue;
    }
    const uint64_t seen = pushed_.load(std::memory_order_relaxed);
    work_.wait_for(lock, kPollInterval);
    looks = seen == pushed_.load(std::memory_order_relaxed) ? looks + 1 : 0;
    if (looks == kPolls) callerRuns_ = looks = 0;
  }
  asleep_ = polls_ = false;
}

// The next operation often follows at once: waking a thread costs more than polling briefly.
void Stream::pollForWork(Lock& lock) {
  const uint64_t seen = pushed_.load(std::memory_order_relaxed);
  const uint64_t until = nowNanoseconds() + std::min(spinNanoseconds_, kMaxPollNanoseconds);
  lock.unlock();
  for (uint32_t round = 1; pushed_.load(std::memory_order_relaxed) == seen; round++) {
    pauseBriefly();
    if (round % 64 != 0) continue;
    if (nowNanoseconds() >= until) break;
    sched_yield();
  }
  lock.lock();
}

// Takes the whole queue and runs it with the lock released.
void Stream::runQueue(Lock& lock) {
  takeBatch();
  lock.unlock();
  runBatch(nullptr);
  lock.lock();
  endBatch();
}

void Stream::takeBatch() {
  running_ = true;
  awaited_ = false;
  batch_.swap(queue_);
  callbacks_ = 0;
}

void Stream::endBatch() {
  if (batch_.back().launcher != nullptr) spinNanoseconds_ = batch_.back().launcher->spinNanoseconds();
  batch_.clear();
  running_ = false;
}

// Without the lock.
void Stream::runBatch(BorrowedThread* borrowed) {
  for (Item& item : batch_) {
    if (borrowed != nullptr && batch_.size() > kBrief) borrowed->yieldIfDue();
    runItem(item, borrowed);
    const uint64_t ended = ended_.fetch_add(1, std::memory_order_seq_cst) + 1;
    if (ended < wakeAt_.load(std::memory_order_seq_cst)) continue;
    std::lock_guard relock(mutex_);
    awaited_ = true;
    wakeAt_.store(~0ull, std::memory_order_seq_cst);
    ended_changed_.notify_all();
  }
}

void Stream::runItem(Item& item, BorrowedThread* borrowed) {
  if (item.launcher != nullptr) {
    if (Status status = item.launcher->run(item.launch, borrowed); !status.ok()) report(status);
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
      callerRuns_++;
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

// Waits until another thread's batch has ended.
void Stream::waitForRunner(Lock& lock, uint64_t until) {
  while ((running_ || owed_) && nowNanoseconds() < until) {
    lock.unlock();
    pauseBriefly();
    sched_yield();
    lock.lock();
  }
}

void Stream::runByItself() {
  Lock lock(mutex_);
  if (running_ || queue_.empty()) return;
  owed_ = true;
  if (asleep_) work_.notify_one();
}

bool Stream::runOnCaller(uint64_t nanoseconds, Status& error) {
  const uint64_t until = nanoseconds == 0 ? 0 : nowNanoseconds() + nanoseconds;
  Lock lock(mutex_);
  callerAlwaysRuns_ = true;
  if (nanoseconds == 0 && !queue_.empty()) owed_ = true;
  waitForRunner(lock, until);
  if (!running_ && !owed_ && !queue_.empty()) {
    if (borrowed_ == nullptr) borrowed_ = std::make_unique<BorrowedThread>();
    takeBatch();
    lock.unlock();
    const bool ended = borrowed_->run(
        [](void* stream) {
          auto& self = *static_cast<Stream*>(stream);
          self.runBatch(self.borrowed_.get());
        },
        this, until);
    lock.lock();
    if (ended) endBatch();
    handed_ = !ended;
  }
  if (asleep_ && (handed_ || (!running_ && !queue_.empty()))) work_.notify_one();
  if (running_ || !queue_.empty()) return false;
  error = std::exchange(error_, Status{});
  return true;
}

namespace {

// Between two streams: the one opens it, the other waits for that. Both hold it.
struct Gate {
  Stream* earlier;
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
};
using HeldGate = std::shared_ptr<Gate>;

void openGate(void* argument, ncclResult_t) {
  const std::unique_ptr<HeldGate> held(static_cast<HeldGate*>(argument));
  std::lock_guard lock((*held)->mutex);
  (*held)->open = true;
  (*held)->changed.notify_all();
}

void awaitGate(void* argument, ncclResult_t) {
  const std::unique_ptr<HeldGate> held(static_cast<HeldGate*>(argument));
  Gate& gate = **held;
  std::unique_lock lock(gate.mutex);
  if (gate.open) return;
  // This thread, which may be borrowed, cannot run it now. As long as the gate is locked the stream does not end.
  gate.earlier->runByItself();
  gate.changed.wait(lock, [&] { return gate.open; });
}

}  // namespace

Status orderStreams(Stream& later, Stream& earlier) {
  const auto gate = std::make_shared<Gate>();
  gate->earlier = &earlier;
  auto opens = std::make_unique<HeldGate>(gate), waits = std::make_unique<HeldGate>(gate);
  NCCLRUN_TRY(earlier.push(openGate, opens.get()));
  opens.release();
  Status status = later.push(awaitGate, waits.get());
  if (status.ok()) waits.release();
  return status;
}

}  // namespace ncclrun
