#include "host/host_data_path.h"

#include <utility>

#include "base/descriptor.h"
#include "datapath/node_barrier.h"
#include "host/stream.h"

namespace ncclrun {

StatusOr<std::shared_ptr<HostCommunicator>> HostCommunicator::open(const DataPath::Setup& setup) {
  auto made = std::make_shared<HostCommunicator>(setup);
  NCCLRUN_TRY(made->start());
  return made;
}

Status HostCommunicator::start() {
  Descriptor listening(setup_.listenFd);
  NCCLRUN_TRY(plan_.openFor(plan::Device::host, setup_.rank, setup_.plan));
  const auto& header = plan_.header();
  recorder_.emplace(setup_.recorder, header.ranks);
  NCCLRUN_TRY(segment_.map(setup_.segmentFd, plan_));
  for (uint32_t host = 0; host < header.hosts; host++) hostNames_.emplace_back(plan_.hostName(host));
  interrupt_ = std::make_unique<Interrupt>(segment_.abortBlock(), ownBell(), setup_.telemetry.get());
  calls_ = std::make_unique<CallCheck>(plan_, segment_, setup_.rank);
  connections_ = std::make_unique<Connections>(plan_, segment_, setup_.rank, *interrupt_, gonePeers_,
                                               listening.release(), setup_.recorder);
  runner_ = std::make_unique<OperationRunner>(plan_, *connections_, setup_.rank);
  return connections_->start();
}

Status HostCommunicator::connect() {
  Status status = connections_->connect();
  if (interrupt_->raised()) return interrupt_->status();
  return status;
}

Status HostCommunicator::enqueue(std::span<const Operation> operations, ncclrunStream_t stream,
                                 const std::shared_ptr<HostCommunicator>& self) {
  if (interrupt_->raised()) return interrupt_->status();
  Stream* const queue = Stream::find(stream);
  if (queue == nullptr) return noSuchStream(stream);
  Launch launch;
  uint32_t nextChannel = 0;  // the ring operations of a group take the channels round-robin
  launch.more.resize(operations.size() - 1);
  for (size_t i = 0; i < operations.size(); i++) {
    Task& task = i == 0 ? launch.first : launch.more[i - 1];
    task.operation = operations[i];
    NCCLRUN_TRY(chooseVariant(plan_, satisfiedBy(task.operation), task));
    if (plan::Algorithm(task.variant.algorithm) != plan::Algorithm::ring) continue;
    task.firstChannel = nextChannel;
    nextChannel = (nextChannel + task.variant.channels) % plan_.header().channels;
  }
  record(launch);
  telemetry_.queued();
  // A ticket's position in the stream is fixed before the next ticket is issued, so that no two streams can wait for
  // each other.
  std::lock_guard lock(mutex_);
  launch.ticket = issued_;
  Status status = queue->push(self, std::move(launch));
  if (status.ok()) issued_++;
  pending_.store(uint32_t(issued_ - nextTicket_), std::memory_order_relaxed);
  return status;
}

void HostCommunicator::useNetworkReductions(NetworkReductions agreed) {
  agreed_.store(agreed, std::memory_order_release);
  connections_->useNetworkReductions(agreed);
}

uint32_t HostCommunicator::satisfiedBy(const Operation& operation) const {
  const NetworkReductions agreed = agreed_.load(std::memory_order_acquire);
  if (agreed == 0) return plan::kRequiresNotCaptured;
  const auto reduction = networkReduction(operation.type, operation.op);
  const bool isReduced = reduction.has_value() && (agreed & bitOf(*reduction)) != 0;
  return plan::kRequiresNotCaptured | (isReduced ? plan::kRequiresNetworkReduction : 0);
}

Status HostCommunicator::awaitRoom() {
  if (!full()) return {};
  std::unique_lock lock(mutex_);
  roomWaiters_++;
  // Wait until the queue is a quarter full, so that not every operation that ends wakes a caller who runs ahead.
  room_.wait(lock, [this] { return issued_ - nextTicket_ <= kQueueDepth / 4 || closed_ || interrupt_->raised(); });
  roomWaiters_--;
  return interrupt_->raised() ? interrupt_->status() : Status{};
}

// The caller holds the lock.
void HostCommunicator::wakeIfRoom() {
  pending_.store(uint32_t(issued_ - nextTicket_), std::memory_order_relaxed);
  if (roomWaiters_ > 0 && (issued_ - nextTicket_ <= kQueueDepth / 4 || closed_ || interrupt_->raised()))
    room_.notify_all();
}

void HostCommunicator::leave(uint64_t collectives) { segment_.leave(plan_.peer(setup_.rank).localIndex, collectives); }

void HostCommunicator::leaveAborted() { segment_.leaveAborted(plan_.peer(setup_.rank).localIndex); }

// Wakes the waiting threads, which check whether the data that they need has arrived.
void HostCommunicator::peerGone(uint32_t rank, const Status& why) {
  gonePeers_.add(rank, why);
  ownBell().sequence.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(ownBell().sequence);
}

void HostCommunicator::abort(const Status& status, FailureScope scope) {
  interrupt_->raise(status, Interrupt::kNobody, scope);
  std::lock_guard lock(mutex_);
  wakeIfRoom();
}

Status HostCommunicator::run(const Launch& launch, BorrowedThread* borrowed) {
  std::unique_lock lock(mutex_);
  if (nextTicket_ != launch.ticket && borrowed != nullptr && borrowed->isBorrowed()) {
    lock.unlock();
    borrowed->yield();  // the launch continues on a thread that may sleep
    lock.lock();
  }
  while (nextTicket_ != launch.ticket) {
    waiters_++;
    ticketChanged_.wait(lock);
    waiters_--;
  }
  Status status = {ncclInvalidUsage, "the communicator was destroyed before the operation began"};
  if (!closed_) {
    busy_ = true;
    lock.unlock();
    // Also where it is refused: whoever compares the ranks' calls reads it there.
    telemetry_.called(launch.first.operation, launch.first.bytes);
    for (const Task& task : launch.more) telemetry_.called(task.operation, task.bytes);
    SpinWait spin(*interrupt_, ownBell(), spinNanoseconds(), borrowed, connections_.get());
    status = interrupt_->raised() ? interrupt_->status() : addCalls(launch);
    connections_->beginLaunch();
    if (status.ok()) {
      status = runner_->run(launch, spin, telemetry_, *recorder_);
    } else {
      cancel(launch);
    }
    connections_->endLaunch();
    // The other ranks wait for this one, which cannot run the operation.
    if (status.code == ncclInternalError) interrupt_->raise(status);
    if (!status.ok() && interrupt_->raised() && setup_.failed) setup_.failed(status, interrupt_->scope());
    lock.lock();
    busy_ = false;
  }
  nextTicket_++;
  wakeIfRoom();
  if (nextTicket_ != issued_) telemetry_.queued();
  if (waiters_ > 0) ticketChanged_.notify_all();
  return status;
}

// The caller queues its operations one call at a time.
void HostCommunicator::record(Launch& launch) {
  if (!recorder_->isOn()) return;
  const uint64_t now = stampNanoseconds();
  const uint16_t flags = launch.more.empty() ? 0 : ncclrunRecordInGroup;
  launch.first.record = recorder_->enqueued(launch.first.operation, launch.first.variant, flags, now);
  for (Task& task : launch.more) task.record = recorder_->enqueued(task.operation, task.variant, flags, now);
}

void HostCommunicator::cancel(const Launch& launch) const {
  const uint64_t now = stampNanoseconds();
  recorder_->ended(launch.first.record, now, ncclrunRecordCancelled);
  for (const Task& task : launch.more) recorder_->ended(task.record, now, ncclrunRecordCancelled);
}

Status HostCommunicator::addCalls(const Launch& launch) {
  Status status = calls_->add(launch.first.operation);
  for (const Task& task : launch.more) {
    if (status.ok()) status = calls_->add(task.operation);
  }
  if (!status.ok()) {
    calls_->awaitOthers();
    interrupt_->raise(status);
  }
  return status;
}

Status HostCommunicator::compareCalls() {
  std::lock_guard lock(mutex_);
  return calls_->end();
}

void HostCommunicator::close() {
  if (!idle())
    interrupt_->raise({ncclInvalidUsage, "the communicator was destroyed while operations were under way"},
                      Interrupt::kNobody, FailureScope::alone);
  std::unique_lock lock(mutex_);
  closed_ = true;
  wakeIfRoom();
  while (busy_) {
    waiters_++;
    ticketChanged_.wait(lock);
    waiters_--;
  }
  lock.unlock();
  // Queued launches see closed_ and touch none of these.
  runner_.reset();
  connections_.reset();
}

bool HostCommunicator::idle() const {
  {
    std::lock_guard lock(mutex_);
    if (nextTicket_ != issued_) return false;
  }
  return connections_->idle();
}

Status HostCommunicator::nodeBarrier() {
  Status status = hostBarrier({.plan = plan_, .segment = segment_, .rank = setup_.rank, .gonePeers = gonePeers_},
                              *interrupt_, ownBell(), spinNanoseconds(), telemetry_);
  if (!status.ok() && setup_.failed) setup_.failed(status, interrupt_->scope());
  return status;
}

const char* HostCommunicator::hostName(uint32_t index) const {
  return index < hostNames_.size() ? hostNames_[index].c_str() : nullptr;
}

namespace {

class HostDataPath final : public DataPath {
 public:
  explicit HostDataPath(std::shared_ptr<HostCommunicator> communicator) : communicator_(std::move(communicator)) {}
  ~HostDataPath() override { communicator_->close(); }

  Status connect() override { return communicator_->connect(); }
  Status enqueue(std::span<const Operation> operations, ncclrunStream_t stream,
                 std::unique_ptr<Announcement>) override {
    return communicator_->enqueue(operations, stream, communicator_);
  }
  Status order(ncclrunStream_t later, ncclrunStream_t earlier) override {
    Stream *const after = Stream::find(later), *const before = Stream::find(earlier);
    if (after == nullptr || before == nullptr) return noSuchStream(after == nullptr ? later : earlier);
    return orderStreams(*after, *before);
  }
  bool full() const override { return communicator_->full(); }
  Status awaitRoom() override { return communicator_->awaitRoom(); }
  Status nodeBarrier() override { return communicator_->nodeBarrier(); }
  uint64_t networkReductions() const override { return communicator_->networkReductions(); }
  void useNetworkReductions(uint64_t agreed) override { communicator_->useNetworkReductions(agreed); }
  void leave(uint64_t collectives) override { communicator_->leave(collectives); }
  void leaveAborted() override { communicator_->leaveAborted(); }
  void peerGone(uint32_t rank, const Status& why, bool) override { communicator_->peerGone(rank, why); }
  void abort(const Status& status, FailureScope scope) override { communicator_->abort(status, scope); }
  Status asyncError() const override { return communicator_->asyncError(); }
  bool idle() const override { return communicator_->idle(); }
  Status compareCalls() override { return communicator_->compareCalls(); }
  const char* hostName(uint32_t index) const override { return communicator_->hostName(index); }
  size_t edges(std::span<ncclrunEdge> out) const override { return communicator_->connections().list(out); }
  Status predict(const Operation& operation, double& microseconds) const override {
    Task task{.operation = operation};
    Status status = chooseVariant(communicator_->plan(), communicator_->satisfiedBy(operation), task);
    microseconds = status.ok() ? predictedMicroseconds(task) : 0;
    return status;
  }
  Status variant(plan::Collective collective, uint64_t bytes, ncclrunVariant& out) const override {
    const Operation usual{.collective = collective, .type = ncclFloat32, .op = ncclSum};
    return variantAt(communicator_->plan(), communicator_->satisfiedBy(usual), collective, bytes, out);
  }
  void info(ncclrunCommInfo& out) const override {
    const auto& plan = communicator_->plan();
    const auto& header = plan.header();
    const uint32_t rank = communicator_->rank();
    out = {rank, header.ranks, plan.peer(rank).localIndex, header.localRanks, header.hostIndex, header.hosts};
  }

 private:
  const std::shared_ptr<HostCommunicator> communicator_;
};

}  // namespace

StatusOr<std::unique_ptr<DataPath>> openHostDataPath(const DataPath::Setup& setup) {
  auto communicator = HostCommunicator::open(setup);
  if (!communicator.ok()) return communicator.status();
  return std::unique_ptr<DataPath>(std::make_unique<HostDataPath>(std::move(communicator.value())));
}

}  // namespace ncclrun
