// How a connection ends in order: its last message, and the receives that are still open.
#include "net/proxy/net_connection.h"

namespace ncclrun {

bool NetConnection::sendEnd() {
  std::lock_guard lock(mutex_);
  if (!sends_ || sender_ == nullptr || failed_.load(std::memory_order_relaxed)) return true;
  move();
  if (failed_.load(std::memory_order_relaxed)) return true;
  if (!hasEnded() && !sendLast()) return false;
  return failed_.load(std::memory_order_relaxed) || sendFillers();
}

bool NetConnection::sendLast() {
  if (endRequest_ == nullptr) {
    if (posted_ != ring_.tail.load() * parts_ || done_ != posted_) return false;
    SlotHeader& header = hasGpuSlots() ? end_ : headerOf(posted_ / parts_);
    header = {.step = uint32_t(posted_ / parts_), .bytes = kEnd, .call = {}};
    const auto& registration = hasGpuSlots() ? endRegistration_ : registration_;
    const Status status = sender_->isend(&header, kEndBytes, kTag, registration, endRequest_);
    if (!status.ok()) return fail(status);
    if (endRequest_ == nullptr) return false;
  }
  bool done = false;
  const Status status = sender_->test(endRequest_, done, {});
  if (!status.ok()) return fail(status);
  if (done) ended_.store(true, std::memory_order_release);
  return done;
}

// Behind the last message all requests are of these.
bool NetConnection::sendFillers() {
  SlotHeader& header = hasGpuSlots() ? end_ : headerOf(0);
  for (; fillers_ > 0; fillers_--) {
    if (posted_ - done_ == requests_.size()) break;
    net::Request* request = nullptr;
    const auto& registration = hasGpuSlots() ? endRegistration_ : registration_;
    const Status status = sender_->isend(&header, 0, kTag, registration, request);
    if (!status.ok()) return fail(status);
    if (request == nullptr) break;
    requestOf(posted_++) = request;
  }
  for (; done_ != posted_; done_++) {
    bool done = false;
    const Status status = sender_->test(requestOf(done_), done, {});
    if (!status.ok()) return fail(status);
    if (!done) return false;
  }
  return fillers_ == 0;
}

void NetConnection::fill(uint64_t messages) {
  std::lock_guard lock(mutex_);
  fillers_ += messages;
}

uint64_t NetConnection::openReceives() const {
  std::lock_guard lock(mutex_);
  return hasDrainFailed_ ? 0 : posted_ - done_;
}

// Some networks do not take it well when a connection is closed under an open request: so the sender completes them by
// empty messages. Where the sender closes at once they fail, and nothing is tested any more.
void NetConnection::drainReceives() {
  if (network_.deliversAfterClose() || hasDrainFailed_) return;
  for (bool done = true; done_ != posted_ && done;) {
    done = false;
    if (!receiver_->test(requestOf(done_), done, {}).ok()) {
      hasDrainFailed_ = true;
      return;
    }
    if (done) done_++;
  }
  visible_ = done_;
}

}  // namespace ncclrun
