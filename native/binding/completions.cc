#include "binding/completions.h"

#include <algorithm>
#include <utility>

namespace ncclrun::binding {

ncclResult_t Completions::runNow(ncclrunStream_t stream) {
  const ncclResult_t result = ncclrunStreamLend(stream, timeoutNanoseconds_);
  const bool inTime = result != ncclInProgress;
  timeoutNanoseconds_ = inTime ? kTimeoutNanoseconds : std::max(timeoutNanoseconds_ / 2, kMinNanoseconds);
  return result;
}

uint64_t Completions::begin(ncclrunStream_t stream, ncclResult_t queued) {
  const uint64_t number = ++begun_;
  if (queued != ncclSuccess) addFailure({number, queued, ncclGetLastError(nullptr)});
  const ncclResult_t result = ncclrunStreamCallback(stream, end, this);
  if (result == ncclSuccess) {
    ncclrunStreamLend(stream, 0);
    return number;
  }
  const std::string sentence = ncclGetLastError(nullptr);
  ncclrunStreamSynchronize(stream);
  addFailure({number, result, sentence});
  end(this, ncclSuccess);
  return number;
}

bool Completions::requestWake() {
  wakeRequested_.store(true, std::memory_order_seq_cst);
  if (!allEnded()) return true;
  wakeRequested_.store(false, std::memory_order_seq_cst);
  return false;
}

std::vector<Completions::Failure> Completions::take(uint64_t from, uint64_t to) {
  std::vector<Failure> taken;
  if (!failed_.load(std::memory_order_acquire)) return taken;
  const std::lock_guard lock(mutex_);
  const auto others = std::stable_partition(failures_.begin(), failures_.end(), [&](const Failure& failure) {
    return failure.number >= from && failure.number <= to;
  });
  taken.assign(failures_.begin(), others);
  failures_.erase(failures_.begin(), others);
  failed_ = !failures_.empty();
  return taken;
}

void Completions::addFailure(Failure&& failure) {
  const std::lock_guard lock(mutex_);
  failures_.push_back(std::move(failure));
  failed_.store(true, std::memory_order_release);
}

void Completions::end(void* completions, ncclResult_t result) {
  auto& self = *static_cast<Completions*>(completions);
  if (result != ncclSuccess)
    self.addFailure({self.ended_.load(std::memory_order_relaxed) + 1, result, ncclGetLastError(nullptr)});
  self.ended_.fetch_add(1, std::memory_order_seq_cst);
  if (self.wakeRequested_.load(std::memory_order_seq_cst) && self.wakeRequested_.exchange(false)) self.wake();
}

}  // namespace ncclrun::binding
