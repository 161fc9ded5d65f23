// The way of a communicator from the first call to `ready`.
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "agent/control_thread.h"
#include "agent/peer_info.h"
#include "base/thread.h"
#include "communicator/communicator.h"
#include "communicator/debug_report.h"
#include "datapath/telemetry.h"

namespace ncclrun {
namespace {

constexpr uint32_t kSetUpRound = 0;  // of the agent's gather that closes the set-up across hosts

Status mapPlan(int descriptor, Mapping& mapping) {
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0 || facts.st_size <= 0) {
    return {ncclInternalError, "the agent sent an empty plan"};
  }
  const auto bytes = static_cast<size_t>(facts.st_size);
  void* address = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED)
    return {ncclSystemError, formatSentence("plan: mmap of %zu bytes: %s", bytes, std::strerror(errno))};
  mapping = Mapping(address, bytes);
  return {};
}

}  // namespace

Status Communicator::fromPlan(std::vector<std::byte> plan, int segmentFd, uint32_t rank, int listenFd,
                              std::shared_ptr<Communicator>& out) {
  auto made = std::make_shared<Communicator>(ncclUniqueId{}, 0, rank, CommSettings{});
  made->usesAgent_ = false;
  made->plan_ = std::move(plan);
  const DataPath::Setup setup = {.plan = std::get<std::vector<std::byte>>(made->plan_),
                                 .segmentFd = segmentFd,
                                 .rank = rank,
                                 .listenFd = listenFd};
  auto opened = DataPath::open(setup);
  if (!opened.ok()) return opened.status();
  made->dataPath_ = std::move(opened.value());
  ncclrunCommInfo info{};
  made->dataPath_->info(info);
  made->membership_.size = info.size;
  made->hosts_ = info.hosts;
  out = std::move(made);
  return {};
}

Status Communicator::part(Communicator& parent, Split split, const CommSettings& settings,
                          std::shared_ptr<Communicator>& out) {
  out = std::make_shared<Communicator>(ncclUniqueId{}, 1, 0, settings, parent.gpu_);
  out->defaultStreamSlot_ = parent.defaultStreamSlot_;
  out->hasMembership_.store(false, std::memory_order_release);
  out->split_ = std::move(split);
  return {};
}

Status Communicator::split(Communicator& parent, int colour, int order, const CommSettings& settings,
                           std::shared_ptr<Communicator>& out) {
  constexpr const char* kName = "ncclCommSplit";
  NCCLRUN_TRY(parent.divisible(kName, false));
  // All ranks that split a revoked one have revoked it: the agents let them, though it is broken.
  const bool revoked = parent.state() == State::revoked;
  return part(parent, {kName, parent.membership_, parent.shared_from_this(), revoked, 0, colour, order, {}}, settings,
              out);
}

// Not earlier: a group that fails begins none of its splits, and the other ranks count none.
void Communicator::takeRound() {
  if (!split_ || split_->numbers == nullptr) return;
  Communicator& parent = *split_->numbers;
  split_->round =
      split_->shrinks ? kShrinkRound + parent.shrinks_.fetch_add(1) : kSplitRound + parent.splits_.fetch_add(1);
  split_->numbers.reset();
}

Status Communicator::shrink(Communicator& parent, LeftOut leftOut, const CommSettings& settings,
                            std::shared_ptr<Communicator>& out) {
  constexpr const char* kName = "ncclCommShrink";
  NCCLRUN_TRY(parent.divisible(kName, true));
  return part(parent, {kName, parent.membership_, parent.shared_from_this(), true, 0, 0, 0, std::move(leftOut)},
              settings, out);
}

void Communicator::start(bool callerCloses) {
  callerCloses_ = callerCloses;
  takeRound();
  if (!usesAgent_) {
    enter(State::joining, State::wiring);
    ControlThread::get().repeat([self = shared_from_this()] { return self->stepWiring(); });
    return;
  }
  ControlThread::get().post([self = shared_from_this()] {
    AgentClient::get().connect(
        [self](const Status& status, const WelcomeMessage& welcome) { self->onWelcome(status, welcome); });
  });
}

void Communicator::onWelcome(const Status& status, const WelcomeMessage& welcome) {
  if (state() != State::joining) return;
  if (!status.ok()) return failWith({status.code, context() + ": " + status.sentence}, false);
  uint16_t port = 0;
  if (welcome.hostCount > 1) {
    int listener = -1;
    if (Status failed = listenForPeers(listener, port); !failed.ok()) {
      return failWith({failed.code, context() + ": " + failed.sentence}, false);
    }
    listener_.reset(listener);
  }
  {
    std::lock_guard lock(mutex_);
    if (state() != State::joining) return;
    hostName_ = welcome.hostName;
    membership_.epoch = welcome.epoch;
    joined_ = true;
  }
  if (gpu_.has_value() && !excluded()) gpuLocation_ = GpuLocation(gpu_->device);
  if (!excluded()) AgentClient::get().expectSlot();
  const PeerInfo info = describePeer(split_ ? split_->parent.id : membership_.id, welcome.hostName, port, gpu_,
                                     settings_, gpuLocation_.before());
  const Bytes question =
      split_ ? encodeSplit(split_->parent, split_->round, split_->colour, split_->order, info, split_->leftOut)
             : encodeJoin(membership_, info);
  AgentClient::get().request(split_ ? FrameKind::split : FrameKind::join, question,
                             excluded() ? FrameKind::table : FrameKind::plan, excluded() ? 0 : 2,
                             [self = shared_from_this()](Answer answer) { self->onPlan(std::move(answer)); });
}

// True: the communicator goes on.
bool Communicator::place(const Answer& answer) {
  if (!split_) return true;
  Membership hasMembership = membership_;
  if (!decodePlan(answer.payload, hasMembership)) {
    failWith({ncclInternalError, context() + ": the agent of this host sent a plan that this engine cannot read"},
             true);
    return false;
  }
  bool aborted;
  {
    std::lock_guard lock(mutex_);
    membership_ = hasMembership;
    hasMembership_.store(true, std::memory_order_release);
    aborted = state() == State::aborted;
    joined_ = true;  // also after an abort told as long as it was a split: the others may have got their plan before
  }
  if (aborted) sendLeave(LeaveHow::aborted, {});
  return !aborted;
}

void Communicator::onPlan(Answer answer) {
  if (!excluded()) AgentClient::get().telemetry().arrived();
  if (!answer.status.ok()) {
    {
      std::lock_guard lock(mutex_);
      joined_ = false;  // refused: nobody counts on us
    }
    return failWith({answer.status.code, context() + ": " + answer.status.sentence}, false);
  }
  if (excluded()) {
    {
      std::lock_guard lock(mutex_);
      joined_ = false;  // nobody counts on us any more
    }
    enter(State::joining, State::finalized);
    return;
  }
  if (!place(answer)) return;
  if (state() != State::joining) return;
  if (Status status = openPlan(answer); !status.ok()) {
    return failWith({status.code, context() + ": " + status.sentence}, true);
  }
  if (!enter(State::joining, State::wiring)) return;
  // For the other ranks, one way or another, until it is ready: an agent that cannot tell how a rank died looks whether
  // others wait.
  Telemetry(telemetry_.get()).waitingIdly(nowNanoseconds());
  ControlThread::get().repeat([self = shared_from_this()] { return self->stepWiring(); });
}

Status Communicator::openPlan(Answer& answer) {
  Mapping mapping;
  NCCLRUN_TRY(mapPlan(answer.descriptors[0].get(), mapping));
  plan_ = std::move(mapping);
  telemetry_ = AgentClient::get().telemetry().claim(membership_);
  const DataPath::Setup setup = {
      .plan = std::get<Mapping>(plan_).bytes(),
      .segmentFd = answer.descriptors[1].get(),
      .rank = rank(),
      .listenFd = listener_.release(),
      .gpu = gpu_,
      .telemetry = telemetry_,
      .failed =
          [weak = weak_from_this()](const Status& status, FailureScope scope) {
            // Not here: the last reference must not go on a thread that an operation runs on.
            ControlThread::get().post([weak, status, scope] {
              if (const auto self = weak.lock(); self != nullptr) self->sendFailing(status, scope);
            });
          },
  };
  auto opened = DataPath::open(setup);
  if (!opened.ok()) return opened.status();
  ncclrunCommInfo info{};
  opened.value()->info(info);
  if (info.size != size()) {
    return {ncclInternalError, formatSentence("the agent sent a plan for %u ranks", info.size)};
  }
  hosts_ = info.hosts;
  std::lock_guard lock(mutex_);
  dataPath_ = std::move(opened.value());
  return {};
}

void Communicator::becomeReady(State from) {
  logReady(context(), *dataPath_);
  Telemetry(telemetry_.get()).rested();  // first: from then on operations write it
  {
    std::lock_guard lock(mutex_);
    setUp_ = true;
  }
  enter(from, State::ready);
}

bool Communicator::stepWiring() {
  if (state() != State::wiring) return true;
  Status status = dataPath_->connect();
  if (status.ok() || status.code == ncclInProgress) {
    if (Status broken = dataPath_->asyncError(); !broken.ok()) status = std::move(broken);
  }
  if (status.code == ncclInProgress) return false;
  if (!status.ok()) {
    failWith({status.code, context() + ": " + status.sentence}, true);
  } else if (usesAgent_) {
    beginClosing();
  } else {
    becomeReady(State::wiring);  // a plan given by hand: nobody says that its ranks are there at the same time
  }
  return true;
}

void Communicator::beginClosing() {
  if (!enter(State::wiring, State::closing) || callerCloses_) return;
  try {
    startThread("ncclrun-setup", [self = shared_from_this()] { self->runClosing(); }).detach();
  } catch (const std::system_error& error) {
    failWith({ncclSystemError, context() + ": cannot start a thread: " + error.what()}, true);
  }
}

void Communicator::runClosing() {
  if (Status failed = dataPath_->nodeBarrier(); !failed.ok()) {
    Status status = dataPath_->asyncError();
    if (status.ok()) status = std::move(failed);
    return failWith({status.code, context() + ": " + status.sentence}, true);
  }
  if (hosts_ == 1) {
    becomeReady(State::closing);
    return;
  }
  ControlThread::get().post([self = shared_from_this()] { self->finishClosing(); });
}

void Communicator::finishClosing() {
  AgentClient::get().request(
      FrameKind::gather, encodeBarrier(membership_, kSetUpRound), FrameKind::table, 0,
      [self = shared_from_this()](const Answer& answer) {
        if (answer.status.ok()) {
          self->becomeReady(State::closing);
        } else {
          self->failWith({answer.status.code, self->context() + ": " + answer.status.sentence}, false);
        }
      });
}

}  // namespace ncclrun
