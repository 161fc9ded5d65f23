#include "communicator/communicator.h"

#include <algorithm>
#include <cstring>

#include "agent/control_thread.h"
#include "agent/unique_id.h"
#include "base/debug.h"
#include "communicator/operation_hash.h"
#include "datapath/telemetry.h"
#include "host/default_stream_slots.h"
#include "host/stream.h"

namespace ncclrun {
namespace {
constexpr auto kFirstPause = std::chrono::microseconds(20);
constexpr auto kLastPause = std::chrono::microseconds(1000);
constexpr auto kLeaveTimeout = std::chrono::milliseconds(50);
}  // namespace

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

Status Communicator::checkStream(ncclrunStream_t stream) const {
  if (isDefaultStream(stream)) return {};
  if (!gpu_.has_value()) return Stream::find(stream) != nullptr ? Status{} : noSuchStream(stream);
  if (!isHostStream(stream)) return {};
  return {ncclInvalidArgument, formatSentence("stream %p is one of the host device, the communicator is one of GPU %d",
                                              static_cast<void*>(stream), gpu_->device)};
}

std::unique_ptr<Announcement> Communicator::announce(std::span<Operation> operations, ncclrunStream_t stream) {
  std::lock_guard lock(queueMutex_);
  if (state() != State::ready) return nullptr;
  for (Operation& operation : operations) operation.chosenAs = chosenAs_.load(std::memory_order_relaxed);
  return dataPath_->announce(operations, slotOf(stream));
}

void Communicator::consent(Announcement& announcement) {
  std::lock_guard lock(queueMutex_);
  if (state() == State::ready) dataPath_->consent(announcement);
}

ncclResult_t Communicator::enqueue(std::span<Operation> operations, ncclrunStream_t stream,
                                   std::unique_ptr<Announcement> announcement) {
  std::lock_guard lock(queueMutex_);
  if (ready("ncclGroupEnd") == nullptr) return currentStatus().ok() ? ncclInvalidUsage : currentStatus().code;
  if (settings_.blocking && mayBeFull()) {
    if (Status status = dataPath_->awaitRoom(); !status.ok()) return fail(status);
  }
  Called called = called_;
  for (Operation& operation : operations) {
    operation.number = ++called.operations;
    operation.before = called.hash;
    called.hash = hashOperation(called.hash, operation);
    operation.hash = called.hash;
    if (operation.collective != plan::Collective::sendRecv) called.hashed++;
    operation.hashed = called.hashed;
    operation.chosenAs = chosenAs_.load(std::memory_order_relaxed);
  }
  if (Status status = dataPath_->enqueue(operations, slotOf(stream), std::move(announcement)); !status.ok())
    return fail(status);
  called_ = called;
  return !settings_.blocking && mayBeFull() && dataPath_->full() ? ncclInProgress : ncclSuccess;
}

// Resolves the handle of a default stream: on the host device each rank has its own default stream.
ncclrunStream_t Communicator::slotOf(ncclrunStream_t stream) const {
  if (!isDefaultStream(stream) || gpu_.has_value()) return stream;
  useDefaultStreamSlot(defaultStreamSlot_);
  return defaultStream(defaultStreamSlot_);
}

Status Communicator::order(ncclrunStream_t later, ncclrunStream_t earlier) {
  std::lock_guard lock(queueMutex_);
  if (dataPath_ == nullptr) return {};
  return dataPath_->order(slotOf(later), slotOf(earlier));
}

Status Communicator::finalize() {
  if (!transition(State::ready, State::finalizing)) {
    if (state() == State::failed || state() == State::aborted) return reportedStatus();
    if (state() == State::revoked) {
      return {ncclInvalidUsage, "ncclCommFinalize: the communicator was revoked; call ncclCommDestroy"};
    }
    return {ncclInvalidUsage,
            isSettled() || state() == State::finalizing
                ? "ncclCommFinalize: the communicator was finalized before"
                : "ncclCommFinalize: the communicator is still being set up; wait until ncclCommGetAsyncError no "
                  "longer says ncclInProgress, or call ncclCommAbort"};
  }
  if (stepFinalizing()) return currentStatus();
  if (!settings_.blocking) {
    ControlThread::get().repeat([self = shared_from_this()] { return self->stepFinalizing(); });
    return {ncclInProgress, {}};
  }
  auto pause = kFirstPause;
  while (!stepFinalizing()) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, pause, [this] { return isSettled(); });
    pause = std::min(pause * 2, kLastPause);
  }
  return currentStatus();
}

bool Communicator::stepFinalizing() {
  if (state() != State::finalizing) return true;
  if (Status status = dataPath_->asyncError(); !status.ok()) {
    failWith(std::move(status), false);
    return true;
  }
  if (!dataPath_->idle()) return false;
  if (Status status = dataPath_->compareCalls(); !status.ok()) {
    {
      std::lock_guard lock(mutex_);
      differing_ = status;
    }
    ControlThread::get().runSoon(
        kLeaveTimeout, [self = shared_from_this(), status] { self->reportFailure(status, FailureScope::all); });
    failWith(std::move(status), false);
    return true;
  }
  if (!transition(State::finalizing, State::finalized)) return true;
  {
    std::lock_guard lock(queueMutex_);
    dataPath_->leave(called_.hashed);
  }
  sendLeave(LeaveHow::finalized, {});
  return true;
}

Status Communicator::close(Status& differing) {
  const bool finalizes = state() == State::ready;
  switch (state()) {
    case State::joining:
    case State::connecting:
    case State::synchronizing:
      return {
          ncclInvalidUsage,
          "ncclCommDestroy: the communicator is still being set up; wait until ncclCommGetAsyncError no longer says "
          "ncclInProgress, or call ncclCommAbort"};
    case State::ready:
      finalize();
      break;
    case State::finalizing:
    case State::finalized:
    case State::revoked:
    case State::failed:
    case State::aborted:
      break;
  }
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return isSettled() && state() != State::ready; });
    if (finalizes) differing = differing_;
  }
  const LeaveHow how = leaveHow(FailureScope::alone, LeaveHow::failedAlone, LeaveHow::failed);
  if (state() == State::failed) sendLeave(how, failure());
  if (state() == State::revoked) sendLeave(how, dataPath_->asyncError().sentence);
  return {};
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

Status Communicator::revoke(const char* function) {
  NCCLRUN_TRY(checkSplittable(function, true));
  const std::string sentence = context() + " called " + function;
  DataPath* path = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (state() == State::revoked) return {};
    if (state() != State::ready && state() != State::failed) {
      return {ncclInvalidUsage, formatSentence("%s: the communicator was finalized or aborted", function)};
    }
    path = dataPath_.get();
    status_ = {};
    state_.store(State::revoked, std::memory_order_release);
  }
  changed_.notify_all();
  path->abort({ncclInvalidUsage, sentence}, FailureScope::alone);
  ControlThread::get().runSoon(kLeaveTimeout, [membership = membership_, sentence] {
    AgentClient::get().notify(FrameKind::leave, encodeLeave(membership, LeaveHow::revoked, sentence, kJoinRound));
  });
  return {};
}

void Communicator::abort(const std::string& reason, FailureScope scope) {
  const std::string sentence = context() + (reason.empty() ? " called ncclCommAbort" : " aborted it: " + reason);
  bool whole = true;
  DataPath* path = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (state() == State::aborted) return;
    // A rank that aborts because a connection was lost or another rank broke the communicator is not to blame for it.
    if (state() != State::failed) status_ = dataPath_ == nullptr ? Status{} : dataPath_->asyncError();
    whole = status_.ok();
    if (whole) status_ = {ncclInvalidUsage, sentence};
    path = dataPath_.get();
    state_.store(State::aborted, std::memory_order_release);
  }
  changed_.notify_all();
  if (path != nullptr) path->abort(currentStatus(), FailureScope::alone);
  const LeaveHow how = whole ? leaveHow(scope, LeaveHow::abortedAlone, LeaveHow::aborted)
                             : leaveHow(FailureScope::alone, LeaveHow::failedAlone, LeaveHow::failed);
  // Notify the agent before the local peers: a peer that sees the abort in the segment may end at once, and the agent
  // must know by then which rank is to blame.
  sendLeave(how, whole && !reason.empty() ? reason : failure());
  if (how == LeaveHow::abortedAlone) path->leaveAborted();
}

// Returns `alone` if only this rank leaves. Until a communicator is ready all ranks wait for each other, so that a rank
// that leaves ends it for all.
LeaveHow Communicator::leaveHow(FailureScope scope, LeaveHow alone, LeaveHow other) {
  std::lock_guard lock(mutex_);
  return wasReady_ && scope == FailureScope::alone ? alone : other;
}

void Communicator::onAborted(const AbortedMessage& message) {
  const bool ours = sameId(message.id, membership_.id) && message.epoch == membership_.epoch;
  if (ours) failWith(message.status, false);
}

void Communicator::peerGone(const PeerGoneMessage& message) {
  if (!hasMembership() || !sameId(message.id, membership_.id) || message.epoch != membership_.epoch) return;
  if (message.receiver != rank()) return;
  DataPath* path = nullptr;
  {
    std::lock_guard lock(mutex_);
    path = dataPath_.get();
  }
  if (path != nullptr) path->peerGone(message.rank, message.status, message.waited);
}

// Reports to the agent that an operation of this rank failed; runs on the control thread. If a received step shows that
// the ranks' calls differ, the agent ends the operations of all ranks; else it notifies the ranks that wait for this
// one.
void Communicator::reportFailure(const Status& status, FailureScope scope) {
  const bool alone = scope == FailureScope::alone;
  {
    std::lock_guard lock(mutex_);
    const bool ownEnd = state() == State::aborted || state() == State::revoked;  // abort() and revoke() report these
    if ((status.code != ncclInvalidUsage && !alone) || ownEnd || sentLeave_ || failureReported_) return;
    failureReported_ = true;
  }
  AgentClient::get().notify(
      FrameKind::leave,
      encodeLeave(membership_, alone ? LeaveHow::brokenAlone : LeaveHow::differed, status.sentence, kJoinRound));
}

// Notifies the agent that this rank leaves: once, and only if the agent knows that this rank joins. Waits up to
// kLeaveTimeout until the frame is sent, because the process may end next.
void Communicator::sendLeave(LeaveHow how, const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    if (!joined_) return;
    joined_ = false;
  }
  const bool splitting = !hasMembership();
  ControlThread::get().runSoon(
      kLeaveTimeout, [weak = weak_from_this(), membership = splitting ? split_->parent : membership_,
                      round = splitting ? split_->round : kJoinRound, how, reason] {
        if (const auto self = weak.lock(); self != nullptr) self->sentLeave_ = true;
        AgentClient::get().notify(FrameKind::leave, encodeLeave(membership, how, reason, round));
      });
}

}  // namespace ncclrun
