#include "communicator/communicator.h"

#include <cstring>

#include "agent/unique_id.h"
#include "base/debug.h"
#include "datapath/telemetry.h"

namespace ncclrun {

Communicator::Communicator(const ncclUniqueId& id, uint32_t size, uint32_t rank, const CommSettings& settings,
                           const std::optional<cuda::Gpu>& gpu)
    : membership_{id, 0, size, rank}, settings_(settings), gpu_(gpu) {}

Communicator::~Communicator() {
  dataPath_.reset();  // it uses the plan, so it ends first
  Telemetry(telemetry_.get()).left();
}

bool Communicator::isSettled() const {
  const State now = state();
  return now == State::ready || now == State::finalized || now == State::revoked || now == State::failed ||
         now == State::aborted;
}

bool Communicator::transition(State from, State to) {
  {
    std::lock_guard lock(mutex_);
    if (state() != from) return false;
    state_.store(to, std::memory_order_release);
  }
  changed_.notify_all();
  return true;
}

void Communicator::failWith(Status status, bool notifyOthers) {
  bool notify = false;
  DataPath* path = nullptr;
  {
    std::lock_guard lock(mutex_);
    const State now = state();
    if (now == State::failed || now == State::aborted || now == State::revoked || now == State::finalized) return;
    notify = notifyOthers && joined_;
    path = dataPath_.get();
    if (now == State::connecting || now == State::synchronizing)
      Telemetry(telemetry_.get()).rested();  // this rank no longer waits for others
    status_ = std::move(status);
    state_.store(State::failed, std::memory_order_release);
  }
  logWarning(failure());
  changed_.notify_all();
  if (path != nullptr) path->abort(currentStatus(), FailureScope::all);
  if (notify) sendLeave(LeaveHow::failed, failure());
}

Status Communicator::currentStatus() {
  std::lock_guard lock(mutex_);
  return status_;
}

Status Communicator::reportedStatus() {
  DataPath* path = nullptr;
  {
    std::lock_guard lock(mutex_);
    path = dataPath_.get();
  }
  if (path != nullptr) path->asyncError();
  return currentStatus();
}

std::string Communicator::failure() { return currentStatus().sentence; }

std::string Communicator::context() {
  std::lock_guard lock(mutex_);
  if (!hasMembership())
    return formatSentence("rank %u of %u in %s", split_->parent.rank, split_->parent.size, split_->function);
  return formatSentence("rank %u of %u%s%s", rank(), size(), hostName_.empty() ? "" : " on ", hostName_.c_str());
}

Status Communicator::waitReady() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return isSettled() || (callerRunsBarrier_ && state() == State::synchronizing); });
  }
  if (state() == State::synchronizing) {
    runSetupBarrier();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return isSettled(); });
  }
  return reportedStatus();
}

Status Communicator::asyncError() {
  switch (state()) {
    case State::joining:
    case State::connecting:
    case State::synchronizing:
    case State::finalizing:
      return {ncclInProgress, {}};
    case State::ready:
      if (Status status = dataPath_->asyncError(); !status.ok()) failWith(std::move(status), false);
      if (!settings_.blocking && mayBeFull() && state() == State::ready && dataPath_->full())
        return {ncclInProgress, {}};
      return currentStatus();
    case State::revoked:
      return {};
    case State::finalized:
    case State::failed:
    case State::aborted:
      return reportedStatus();
  }
  return reportedStatus();
}

bool Communicator::hasSameId(const Communicator& other) const {
  return usesAgent_ && other.usesAgent_ && !isSplit() && !other.isSplit() &&
         sameId(membership_.id, other.membership_.id);
}

bool Communicator::precedes(const Communicator& one, const Communicator& other) {
  return std::memcmp(&one.membership_.id, &other.membership_.id, sizeof(ncclUniqueId)) < 0;
}

DataPath* Communicator::ready(const char* function) {
  switch (state()) {
    case State::ready:
      return dataPath_.get();
    case State::failed:
    case State::aborted:
      fail(reportedStatus());
      return nullptr;
    case State::revoked:
      fail(
          ncclInvalidUsage,
          "%s: the communicator was revoked; only ncclCommShrink, ncclCommSplit, ncclCommDestroy and ncclCommAbort may "
          "follow",
          function);
      return nullptr;
    case State::finalizing:
    case State::finalized:
      fail(ncclInvalidUsage, "%s: the communicator was finalized; only ncclCommDestroy may follow", function);
      return nullptr;
    case State::joining:
    case State::connecting:
    case State::synchronizing:
      fail(ncclInvalidUsage,
           "%s: the communicator is still being set up; wait until ncclCommGetAsyncError no longer says ncclInProgress",
           function);
      return nullptr;
  }
  return nullptr;
}

Status Communicator::checkSplittable(const char* function, bool broken) {
  if (!usesAgent_) {
    return {
        ncclInvalidUsage,
        formatSentence("%s: the communicator was made from a plan given by hand; it needs one that ncclCommInitRank "
                       "or one of its like made",
                       function)};
  }
  // Read the state once: if the communicator fails meanwhile, it counts as the state that was read.
  const State now = state();
  if (now == State::revoked || now == State::ready) return {};
  if (broken && now == State::failed) {
    std::lock_guard lock(mutex_);
    return dataPath_ != nullptr ? Status{} : status_;  // without a data path it never became ready
  }
  return ready(function) != nullptr
             ? Status{}
             : Status{currentStatus().ok() ? ncclInvalidUsage : currentStatus().code, lastError()};
}

}  // namespace ncclrun
