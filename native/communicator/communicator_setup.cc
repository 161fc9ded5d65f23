// Set-up of a communicator, from the first call to `ready`.
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "agent/control_thread.h"
#include "agent/peer_info.h"
#include "base/thread.h"
#include "communicator/communicator.h"
#include "communicator/debug_report.h"
#include "datapath/nic_list.h"
#include "datapath/telemetry.h"
#include "net/plugin/unused_plugins.h"

namespace ncclrun {
namespace {

constexpr uint32_t kSetUpRound = 0;  // round of the agent's gather that ends the set-up across hosts

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

// The bits that are in the words of all ranks of a gather; none where it cannot be read.
uint64_t commonBits(const Bytes& table) {
  ByteReader reader(table);
  uint64_t common = ~uint64_t(0);
  for (uint32_t left = reader.u32(); left > 0 && common != 0; left--) {
    const std::string one = reader.text();
    uint64_t word = 0;
    if (one.size() == sizeof word) std::memcpy(&word, one.data(), sizeof word);
    common &= word;
  }
  return common;
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

Status Communicator::makeChild(Communicator& parent, Split split, const CommSettings& settings,
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
  NCCLRUN_TRY(parent.checkSplittable(kName, false));
  // All ranks that split a revoked communicator have revoked it, so the agents treat this split as a shrink.
  const bool revoked = parent.state() == State::revoked;
  return makeChild(parent, {kName, parent.membership_, parent.shared_from_this(), revoked, 0, colour, order, {}},
                   settings, out);
}

// Called by start() and not before: a group that fails begins none of its splits, and the other ranks count none.
void Communicator::takeRoundNumber() {
  if (!split_ || split_->numberingParent == nullptr) return;
  Communicator& parent = *split_->numberingParent;
  split_->round =
      split_->shrinks ? kShrinkRound + parent.shrinks_.fetch_add(1) : kSplitRound + parent.splits_.fetch_add(1);
  split_->numberingParent.reset();
}

Status Communicator::shrink(Communicator& parent, LeftOut leftOut, const CommSettings& settings,
                            std::shared_ptr<Communicator>& out) {
  constexpr const char* kName = "ncclCommShrink";
  NCCLRUN_TRY(parent.checkSplittable(kName, true));
  return makeChild(parent, {kName, parent.membership_, parent.shared_from_this(), true, 0, 0, 0, std::move(leftOut)},
                   settings, out);
}

void Communicator::start(bool callerRunsBarrier) {
  callerRunsBarrier_ = callerRunsBarrier;
  setupTimes_.begun = setupTimes_.planned = nowNanoseconds();
  takeRoundNumber();
  if (!usesAgent_) {
    transition(State::joining, State::connecting);
    ControlThread::get().repeat([self = shared_from_this()] { return self->stepConnecting(); });
    return;
  }
  ControlThread::get().post([self = shared_from_this()] {
    AgentClient::get().connect(
        [self](const Status& status, const WelcomeMessage& welcome) { self->onWelcome(status, welcome); });
  });
}

void Communicator::onWelcome(const Status& status, const WelcomeMessage& welcome) {
  if (state() != State::joining && state() != State::aborted) return;
  if (!status.ok()) return failWith({status.code, context() + ": " + status.sentence}, false);
  uint16_t port = 0;
  if (welcome.hostCount > 1) {
    int listener = -1;
    if (Status failed = listenForPeers(listener, port); !failed.ok()) {
      return failWith({failed.code, context() + ": " + failed.sentence}, false);
    }
    listener_.reset(listener);
  }
  // A rank that left before also joins, and leaves at once: the agent cannot notify the ranks that wait for a rank that
  // it does not know, and those that have not joined yet would wait without end.
  std::optional<Leave> unsent;
  {
    std::lock_guard lock(mutex_);
    if (state() != State::joining && state() != State::aborted) return;
    hostName_ = welcome.hostName;
    membership_.epoch = welcome.epoch;
    joined_ = true;
    unsent = std::exchange(unsent_, std::nullopt);
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
  if (unsent) sendLeave(unsent->how, unsent->reason);
}

// Takes a split's membership from the plan. Returns false if the plan cannot be read or the user has aborted.
bool Communicator::adoptMembership(const Answer& answer) {
  if (!split_) return true;
  Membership decoded = membership_;
  if (!decodePlan(answer.payload, decoded)) {
    failWith({ncclInternalError, context() + ": the agent of this host sent a plan that this engine cannot read"},
             true);
    return false;
  }
  bool aborted;
  {
    std::lock_guard lock(mutex_);
    membership_ = decoded;
    hasMembership_.store(true, std::memory_order_release);
    aborted = state() == State::aborted;
    joined_ = true;  // even if an abort left the split's round: the other ranks may have received their plan before
  }
  if (aborted) sendLeave(LeaveHow::aborted, {});
  return !aborted;
}

void Communicator::onPlan(Answer answer) {
  setupTimes_.planned = nowNanoseconds();
  if (!excluded()) AgentClient::get().telemetry().arrived();
  if (!answer.status.ok()) {
    {
      std::lock_guard lock(mutex_);
      joined_ = false;  // the agent has refused this rank
    }
    return failWith({answer.status.code, context() + ": " + answer.status.sentence}, false);
  }
  if (excluded()) {
    {
      std::lock_guard lock(mutex_);
      joined_ = false;  // the round is complete
    }
    transition(State::joining, State::finalized);
    return;
  }
  if (!adoptMembership(answer)) return;
  if (state() != State::joining) return;
  if (Status status = openPlan(answer); !status.ok()) {
    return failWith({status.code, context() + ": " + status.sentence}, true);
  }
  if (!transition(State::joining, State::connecting)) return;
  // This rank waits for the other ranks until the communicator is ready. An agent that does not know how a rank died
  // checks whether others wait.
  Telemetry(telemetry_.get()).waitingIdly(nowNanoseconds());
  ControlThread::get().repeat([self = shared_from_this()] { return self->stepConnecting(); });
}

std::span<const std::byte> Communicator::planBytes() const {
  if (const auto* mapping = std::get_if<Mapping>(&plan_)) return mapping->bytes();
  return std::get<std::vector<std::byte>>(plan_);
}

Status Communicator::nics(uint32_t host, std::span<ncclrunNic> out, size_t& count) const {
  return listNics(planBytes(), host, out, count);
}

Status Communicator::openPlan(Answer& answer) {
  Mapping mapping;
  NCCLRUN_TRY(mapPlan(answer.descriptors[0].get(), mapping));
  plan_ = std::move(mapping);
  net::plugin::reportWishedPlugins();
  telemetry_ = AgentClient::get().telemetry().claim(membership_);
  recorder_ = AgentClient::get().recorder().claim(membership_, settings_.name);
  const DataPath::Setup setup = {
      .plan = std::get<Mapping>(plan_).bytes(),
      .segmentFd = answer.descriptors[1].get(),
      .rank = rank(),
      .listenFd = listener_.release(),
      .gpu = gpu_,
      .telemetry = telemetry_,
      .recorder = recorder_,
      .failed =
          [weak = weak_from_this()](const Status& status, FailureScope scope) {
            // Post it, because a thread that runs an operation must not drop the last reference.
            ControlThread::get().post([weak, status, scope] {
              if (const auto self = weak.lock(); self != nullptr) self->reportFailure(status, scope);
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
  logReady(context(), *dataPath_, setupTimes_);
  if (rank() == 0) logNetwork(context(), planBytes());
  Telemetry(telemetry_.get()).rested();  // first: from then on operations write it
  {
    std::lock_guard lock(mutex_);
    wasReady_ = true;
  }
  transition(from, State::ready);
}

bool Communicator::stepConnecting() {
  if (state() != State::connecting) return true;
  Status status = dataPath_->connect();
  if (status.ok() || status.code == ncclInProgress) {
    if (Status broken = dataPath_->asyncError(); !broken.ok()) status = std::move(broken);
  }
  if (status.code == ncclInProgress) return false;
  setupTimes_.connected = nowNanoseconds();
  if (!status.ok()) {
    failWith({status.code, context() + ": " + status.sentence}, true);
  } else if (usesAgent_) {
    beginSetupBarrier();
  } else {
    becomeReady(State::connecting);  // no barrier: the ranks of a plan given by hand may start at different times
  }
  return true;
}

void Communicator::beginSetupBarrier() {
  if (!transition(State::connecting, State::synchronizing) || callerRunsBarrier_) return;
  try {
    startThread("ncclrun-setup", [self = shared_from_this()] { self->runSetupBarrier(); }).detach();
  } catch (const std::system_error& error) {
    failWith({ncclSystemError, context() + ": cannot start a thread: " + error.what()}, true);
  }
}

void Communicator::runSetupBarrier() {
  if (Status failed = dataPath_->nodeBarrier(); !failed.ok()) {
    Status status = dataPath_->asyncError();
    if (status.ok()) status = std::move(failed);
    return failWith({status.code, context() + ": " + status.sentence}, true);
  }
  if (hosts_ == 1) {
    becomeReady(State::synchronizing);
    return;
  }
  ControlThread::get().post([self = shared_from_this()] { self->finishSetupBarrier(); });
}

// The barrier also brings what every rank's network can reduce.
void Communicator::finishSetupBarrier() {
  const uint64_t own = dataPath_->networkReductions();
  AgentClient::get().request(
      FrameKind::gather, encodeGather(membership_, kSetUpRound, std::as_bytes(std::span(&own, 1))), FrameKind::table, 0,
      [self = shared_from_this()](const Answer& answer) {
        if (answer.status.ok()) {
          self->dataPath_->useNetworkReductions(commonBits(answer.payload));
          self->becomeReady(State::synchronizing);
        } else {
          self->failWith({answer.status.code, self->context() + ": " + answer.status.sentence}, false);
        }
      });
}

}  // namespace ncclrun
