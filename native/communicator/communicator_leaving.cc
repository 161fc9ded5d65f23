// How a communicator ends: finalized, revoked, aborted, or broken by another rank; and what the agent learns of it.
#include <algorithm>
#include <chrono>

#include "agent/control_thread.h"
#include "agent/unique_id.h"
#include "communicator/communicator.h"

namespace ncclrun {
namespace {
constexpr auto kFirstPause = std::chrono::microseconds(20);
constexpr auto kLastPause = std::chrono::microseconds(1000);
constexpr auto kLeaveTimeout = std::chrono::milliseconds(50);
}  // namespace

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

// Notifies the agent that this rank leaves: once, and as soon as the agent knows that this rank joins. Waits up to
// kLeaveTimeout until the frame is sent, because the process may end next.
void Communicator::sendLeave(LeaveHow how, const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    if (!joined_) {
      unsent_ = Leave{how, reason};
      return;
    }
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
