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
  dataPath_.reset();  // before the plan that it uses
  Telemetry(telemetry_.get()).left();
}

bool Communicator::settled() const {
  const State now = state();
  return now == State::ready || now == State::finalized || now == State::revoked || now == State::failed ||
         now == State::aborted;
}

bool Communicator::enter(State from, State to) {
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
    if (now == State::wiring || now == State::closing)
      Telemetry(telemetry_.get()).rested();  // it waits for nobody any more
    status_ = std::move(status);
    state_.store(State::failed, std::memory_order_release);
  }
  logWarning(failure());
  changed_.notify_all();
  if (path != nullptr) path->abort(statusNow(), FailureScope::all);
  if (notify) sendLeave(LeaveHow::failed, failure());
}

Status Communicator::statusNow() {
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
  return statusNow();
}

std::string Communicator::failure() { return statusNow().sentence; }

std::string Communicator::context() {
  std::lock_guard lock(mutex_);
  if (!hasMembership())
    return formatSentence("rank %u of %u in %s", split_->parent.rank, split_->parent.size, split_->function);
  return formatSentence("rank %u of %u%s%s", rank(), size(), hostName_.empty() ? "" : " on ", hostName_.c_str());
}

Status Communicator::waitReady() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return settled() || (callerCloses_ && state() == State::closing); });
  }
  if (state() == State::closing) {
    runClosing();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return settled(); });
  }
  return reportedStatus();
}

Status Communicator::asyncError() {
  switch (state()) {
    case State::joining:
    case State::wiring:
    case State::closing:
    case State::finalizing:
      return {ncclInProgress, {}};
    case State::ready:
      if (Status status = dataPath_->asyncError(); !status.ok()) failWith(std::move(status), false);
      if (!settings_.blocking && mayBeFull() && state() == State::ready && dataPath_->full())
        return {ncclInProgress, {}};
      return statusNow();
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

bool Communicator::earlier(const Communicator& one, const Communicator& other) {
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
    case State::wiring:
    case State::closing:
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
  if (ready("ncclGroupEnd") == nullptr) return statusNow().ok() ? ncclInvalidUsage : statusNow().code;
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

// The stream that a default stream's handle stands for on the host device.
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
  if (!enter(State::ready, State::finalizing)) {
    if (state() == State::failed || state() == State::aborted) return reportedStatus();
    if (state() == State::revoked) {
      return {ncclInvalidUsage, "ncclCommFinalize: the communicator was revoked; call ncclCommDestroy"};
    }
    return {ncclInvalidUsage,
            settled() || state() == State::finalizing
                ? "ncclCommFinalize: the communicator was finalized before"
                : "ncclCommFinalize: the communicator is still being set up; wait until ncclCommGetAsyncError no "
                  "longer says ncclInProgress, or call ncclCommAbort"};
  }
  if (stepFinalizing()) return statusNow();
  if (!settings_.blocking) {
    ControlThread::get().repeat([self = shared_from_this()] { return self->stepFinalizing(); });
    return {ncclInProgress, {}};
  }
  auto pause = kFirstPause;
  while (!stepFinalizing()) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, pause, [this] { return settled(); });
    pause = std::min(pause * 2, kLastPause);
  }
  return statusNow();
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
    ControlThread::get().runSoon(kLeaveTimeout,
                                 [self = shared_from_this(), status] { self->sendFailing(status, FailureScope::all); });
    failWith(std::move(status), false);
    return true;
  }
  if (!enter(State::finalizing, State::finalized)) return true;
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
    case State::wiring:
    case State::closing:
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
    changed_.wait(lock, [this] { return settled() && state() != State::ready; });
    if (finalizes) differing = differing_;
  }
  const LeaveHow how = leaving(FailureScope::alone, LeaveHow::failedAlone, LeaveHow::failed);
  if (state() == State::failed) sendLeave(how, failure());
  if (state() == State::revoked) sendLeave(how, dataPath_->asyncError().sentence);
  return {};
}

Status Communicator::divisible(const char* function, bool broken) {
  if (!usesAgent_) {
    return {
        ncclInvalidUsage,
        formatSentence("%s: the communicator was made from a plan given by hand; it needs one that ncclCommInitRank "
                       "or one of its like made",
                       function)};
  }
  // The state is read once: a communicator that fails from here on still divides where a failed one does.
  const State now = state();
  if (now == State::revoked || now == State::ready) return {};
  if (broken && now == State::failed) {
    std::lock_guard lock(mutex_);
    return dataPath_ != nullptr ? Status{} : status_;  // it never was
  }
  return ready(function) != nullptr ? Status{}
                                    : Status{statusNow().ok() ? ncclInvalidUsage : statusNow().code, lastError()};
}

Status Communicator::revoke(const char* function) {
  NCCLRUN_TRY(divisible(function, true));
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
    // Who aborts because a connection was lost, or another rank broke it, breaks nothing that was whole.
    if (state() != State::failed) status_ = dataPath_ == nullptr ? Status{} : dataPath_->asyncError();
    whole = status_.ok();
    if (whole) status_ = {ncclInvalidUsage, sentence};
    path = dataPath_.get();
    state_.store(State::aborted, std::memory_order_release);
  }
  changed_.notify_all();
  if (path != nullptr) path->abort(statusNow(), FailureScope::alone);
  const LeaveHow how = whole ? leaving(scope, LeaveHow::abortedAlone, LeaveHow::aborted)
                             : leaving(FailureScope::alone, LeaveHow::failedAlone, LeaveHow::failed);
  // The agent first: a peer that learns of it from the segment may end at once, and the agent has to know then who is
  // to blame for that.
  sendLeave(how, whole && !reason.empty() ? reason : failure());
  if (how == LeaveHow::abortedAlone) path->leaveAborted();
}

// Before it is set up all ranks wait for each other.
LeaveHow Communicator::leaving(FailureScope scope, LeaveHow alone, LeaveHow other) {
  std::lock_guard lock(mutex_);
  return setUp_ && scope == FailureScope::alone ? alone : other;
}

void Communicator::brokenByAgent(const AbortedMessage& message) {
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

// On the control thread: an operation failed here. Where the ranks' calls differ, as a step that came says, the others
// need not wait until they find out by themselves; else the ranks that wait for this one must be notified.
void Communicator::sendFailing(const Status& status, FailureScope scope) {
  const bool alone = scope == FailureScope::alone;
  {
    std::lock_guard lock(mutex_);
    const bool ownEnd = state() == State::aborted || state() == State::revoked;  // which is reported as what it is
    if ((status.code != ncclInvalidUsage && !alone) || ownEnd || sentLeave_ || sentFailing_) return;
    sentFailing_ = true;
  }
  AgentClient::get().notify(
      FrameKind::leave,
      encodeLeave(membership_, alone ? LeaveHow::brokenAlone : LeaveHow::differed, status.sentence, kJoinRound));
}

// Once, and only if the agent knows that this rank joins. Waits a moment for the frame to be on its way, because the
// process may end next.
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
