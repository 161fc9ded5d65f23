#include "net/plugin/attempt_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/thread.h"
#include "net/plugin/attempt_state.h"

namespace ncclrun::net::plugin {
namespace {

constexpr auto kShortestPause = std::chrono::microseconds(50);
constexpr auto kLongestPause = std::chrono::microseconds(1000);
constexpr auto kIdle = std::chrono::seconds(1);  // a thread without attempts ends
constexpr uint64_t kLostCall = 60'000'000'000;   // ns: a thread whose call does not return counts no more

}  // namespace

struct AttemptPool::Worker {
  uint64_t callAge() const {
    const uint64_t began = callBegan.load();
    return began == 0 ? 0 : nowNanoseconds() - began;
  }
  std::list<std::shared_ptr<Attempt::State>> attempts;  // its own thread's, and with the pool's mutex
  std::atomic<uint64_t> callBegan{0};                   // ns; 0: it is in no call
};

// Never destroyed: a thread in a call outlives the program's exit handlers.
AttemptPool& AttemptPool::of(Attempt::Kind kind) {
  static auto* const pools = new AttemptPool[3];
  return pools[size_t(kind)];
}

Status AttemptPool::add(const std::shared_ptr<Attempt::State>& attempt) {
  std::lock_guard lock(mutex_);
  waiting_.push_back(attempt);
  const auto isFree = [](const auto& worker) { return worker->attempts.empty(); };
  const auto free = size_t(std::count_if(workers_.begin(), workers_.end(), isFree));
  Status status;
  if (free < waiting_.size() && workers_.size() < kThreads) status = startWorker();
  changed_.notify_one();
  if (status.ok() || !workers_.empty()) return {};
  waiting_.pop_back();
  return status;
}

void AttemptPool::relieve() {
  std::lock_guard lock(mutex_);
  const auto isFast = [](const auto& worker) { return worker->callAge() < kLongCall; };
  const auto isLost = [](const auto& worker) { return worker->callAge() > kLostCall; };
  if (waiting_.empty() || std::any_of(workers_.begin(), workers_.end(), isFast)) return;
  const auto lost = size_t(std::count_if(workers_.begin(), workers_.end(), isLost));
  if (workers_.size() - lost < kMaxThreads) startWorker();  // else the attempt waits
}

Status AttemptPool::startWorker() {
  auto worker = std::make_shared<Worker>();
  try {
    startThread("ncclrun-plugin", [this, worker] { run(*worker); }).detach();
  } catch (const std::system_error& refused) {
    return {ncclSystemError, refused.what()};
  }
  workers_.push_back(std::move(worker));
  return {};
}

bool AttemptPool::take(Worker& worker) {
  std::unique_lock lock(mutex_);
  if (worker.attempts.empty()) changed_.wait_for(lock, kIdle, [this] { return !waiting_.empty(); });
  if (!waiting_.empty()) {
    worker.attempts.push_front(std::move(waiting_.front()));  // the next call is its first, whatever the others do
    waiting_.pop_front();
  }
  if (!worker.attempts.empty()) return true;
  std::erase_if(workers_, [&](const auto& one) { return one.get() == &worker; });
  return false;
}

void AttemptPool::run(Worker& worker) {
  auto pause = kShortestPause;
  while (take(worker)) {
    size_t over = 0;
    for (auto at = worker.attempts.begin(); at != worker.attempts.end();) {
      worker.callBegan.store(nowNanoseconds());
      const bool isOver = (*at)->step();
      worker.callBegan.store(0);
      const auto next = std::next(at);
      if (isOver) {
        std::lock_guard lock(mutex_);
        worker.attempts.erase(at);
        over++;
      }
      at = next;
    }
    pause = over > 0 ? kShortestPause : std::min(pause * 2, kLongestPause);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace ncclrun::net::plugin
