#include "binding/endings.h"

#include <algorithm>
#include <utility>

namespace ncclrun::binding {

ncclResult_t Endings::tryNow(ncclrunStream_t stream) {
  const ncclResult_t result = ncclrunStreamLend(stream, timeoutNanoseconds_);
  const bool inTime = result != ncclInProgress;
  timeoutNanoseconds_ = inTime ? kTimeoutNanoseconds : std::max(timeoutNanoseconds_ / 2, kMinNanoseconds);
  return result;
}

uint64_t Endings::begin(ncclrunStream_t stream, ncclResult_t queued) {
  const uint64_t number = ++begun_;
  if (queued != ncclSuccess) note({number, queued, ncclGetLastError(nullptr)});
  const ncclResult_t result = ncclrunStreamCallback(stream, end, this);
  if (result == ncclSuccess) {
    ncclrunStreamLend(stream, 0);
    return number;
  }
  const std::string sentence = ncclGetLastError(nullptr);
  ncclrunStreamSynchronize(stream);
  note({number, result, sentence});
  end(this, ncclSuccess);
  return number;
}

bool Endings::want() {
  wanted_.store(true, std::memory_order_seq_cst);
  if (!allEnded()) return true;
  wanted_.store(false, std::memory_order_seq_cst);
  return false;
}

std::vector<Endings::Failure> Endings::take(uint64_t from, uint64_t to) {
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

void Endings::note(Failure&& failure) {
  const std::lock_guard lock(mutex_);
  failures_.push_back(std::move(failure));
  failed_.store(true, std::memory_order_release);
}

void Endings::end(void* endings, ncclResult_t result) {
  auto& self = *static_cast<Endings*>(endings);
  if (result != ncclSuccess)
    self.note({self.ended_.load(std::memory_order_relaxed) + 1, result, ncclGetLastError(nullptr)});
  self.ended_.fetch_add(1, std::memory_order_seq_cst);
  if (self.wanted_.load(std::memory_order_seq_cst) && self.wanted_.exchange(false)) self.wake();
}

}  // namespace ncclrun::binding
