// How CudaDataPath queues operations: it chooses variants that all ranks can run, makes agreements with the other ranks
// about copies, and launches kernels and copies.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/debug.h"
#include "cuda/cuda_data_path.h"
#include "net/proxy/choose_network.h"

namespace ncclrun::cuda {
namespace {

// The clocks of a GPU and of its host drift apart by some microseconds in a second: between two readings.
constexpr uint64_t kClockReadingNs = 10'000'000'000;

}  // namespace

// Requirements of variants that this rank knows to hold at every rank.
uint32_t CudaDataPath::provenRequirements(bool captured) const {
  const bool hasHostSlots =
      resources_->net != nullptr && net::transportOf(resources_->net->network()) == plan::Transport::socket;
  return (hasLL128_ ? plan::kRequiresWholeLines : 0) | (captured ? 0 : plan::kRequiresNotCaptured) |
         (hasHostSlots ? plan::kRequiresHostSlots : 0);
}

uint32_t CudaDataPath::provenRequirements(bool captured, const Operation& operation) const {
  const NetworkReductions agreed = reductions_.load(std::memory_order_acquire);
  const auto reduction = networkReduction(operation.type, operation.op);
  const bool isReduced = agreed != 0 && reduction.has_value() && (agreed & bitOf(*reduction)) != 0;
  return provenRequirements(captured) | (isReduced ? plan::kRequiresNetworkReduction : 0);
}

uint32_t CudaDataPath::negotiableRequirements() const {
  return resources_->copies != nullptr ? plan::kRequiresPublishedAddresses : 0;
}

// Chooses the variants on which all ranks can agree for the operations.
Status CudaDataPath::choose(std::span<const Operation> operations, bool captured, std::vector<Task>& tasks) const {
  tasks.resize(operations.size());
  for (size_t i = 0; i < operations.size(); i++) {
    tasks[i].operation = carriedOutBy(operations[i]);
    const bool isSelf = operations[i].collective == plan::Collective::sendRecv && operations[i].peer == setup_.rank;
    const uint32_t negotiable = !isSelf && operations[i].count > 0 ? negotiableRequirements() : 0;
    NCCLRUN_TRY(chooseVariant(plan(), provenRequirements(captured, tasks[i].operation) | negotiable, tasks[i]));
  }
  return {};
}

// A pending announcement and its tasks, with the variants that need the other ranks' consent.
class CudaDataPath::PendingAnnouncement final : public Announcement {
 public:
  PendingAnnouncement(CudaDataPath& path, bool isCaptured) : captured(isCaptured), path_(path) {}
  ~PendingAnnouncement() override {
    std::lock_guard lock(path_.mutex_);
    const OnGpu here(path_.resources_->gpu);
    const DirectCopies::Announced ends = std::move(copies);
  }

  const bool captured;
  std::vector<Task> tasks;
  DirectCopies::Announced copies;

 private:
  CudaDataPath& path_;
};

// Returns null if there is nothing to announce or the operations cannot be queued; enqueue() then returns the error.
std::unique_ptr<Announcement> CudaDataPath::announce(std::span<const Operation> operations, ncclrunStream_t stream) {
  if (resources_->copies == nullptr || interrupt().raised()) return nullptr;
  const OnGpu here(resources_->gpu);
  Capture capture;
  if (!LaunchOrder::captureOf(reinterpret_cast<Stream>(stream), capture).ok()) return nullptr;
  auto pending = std::make_unique<PendingAnnouncement>(*this, capture.id != 0);
  std::lock_guard lock(mutex_);
  if (!choose(operations, pending->captured, pending->tasks).ok()) return nullptr;
  pending->copies = resources_->copies->announce(pending->tasks);
  return pending->copies.empty() ? nullptr : std::move(pending);
}

void CudaDataPath::consent(Announcement& announcement) {
  auto& pending = static_cast<PendingAnnouncement&>(announcement);
  std::lock_guard lock(mutex_);
  const OnGpu here(resources_->gpu);
  resources_->copies->consent(pending.copies, deadline(pending.tasks, pending.captured),
                              [&] { return areBuffersUnused(); });
}

Status CudaDataPath::enqueue(std::span<const Operation> operations, ncclrunStream_t stream,
                             std::unique_ptr<Announcement> announcement) {
  if (interrupt().raised()) return interrupt().status();
  const auto isEmpty = [](const Operation& one) {
    return one.count == 0 && one.collective != plan::Collective::barrier;
  };
  if (resources_->net != nullptr) lookAtReceivers(operations);
  std::lock_guard lock(mutex_);
  if (std::all_of(operations.begin(), operations.end(), isEmpty)) return addCalls(operations);
  NCCLRUN_TRY(checkPresent(operations));
  const OnGpu here(resources_->gpu);
  const auto cudaStream = reinterpret_cast<Stream>(stream);
  Capture capture;
  NCCLRUN_TRY(resources_->order->before(cudaStream, capture));
  NCCLRUN_TRY(captures_.retain(resources_, cudaStream, capture.id));
  addAwaited(operations, cudaStream, capture);
  if (announcement != nullptr) {
    auto& pending = static_cast<PendingAnnouncement&>(*announcement);
    for (size_t i = 0; i < operations.size(); i++) pending.tasks[i].operation = operations[i];
    Status status = run(pending.tasks, std::move(pending.copies), cudaStream, capture);
    return status.ok() ? addCalls(operations) : status;
  }
  NCCLRUN_TRY(choose(operations, capture.id != 0, unannounced_));
  NCCLRUN_TRY(connectFor(unannounced_));
  DirectCopies::Announced copies;
  if (resources_->copies != nullptr) copies = resources_->copies->announce(unannounced_);
  Status status = run(unannounced_, std::move(copies), cudaStream, capture);
  return status.ok() ? addCalls(operations) : status;
}

// A send to a rank of another host that has left would end well, unread.
void CudaDataPath::lookAtReceivers(std::span<const Operation> operations) {
  for (const Operation& one : operations) {
    const bool sends = one.collective == plan::Collective::sendRecv && one.send != nullptr;
    if (sends && !plan().sameHost(one.peer)) resources_->net->lookAt(one.peer);
  }
}

void CudaDataPath::addAwaited(std::span<const Operation> operations, Stream stream, const Capture& capture) {
  const AwaitedPeers::Caller self{setup_.rank, plan().header().ranks};
  bool isMarked = false;
  std::unique_lock lock(awaitedMutex_);
  if (awaited_.wantsMark(operations, self)) {
    lock.unlock();
    isMarked = resources_->order->mark(stream, capture);
    lock.lock();
  }
  if (isMarked) markedBlocks_ = resources_->activity.launched.load(std::memory_order_relaxed);
  awaited_.add(operations, self, isMarked);
}

// Counts the calls. An operation that could not be queued gets no number, so the program may retry it.
Status CudaDataPath::addCalls(std::span<const Operation> operations) {
  Status status;
  for (const Operation& one : operations) {
    telemetry_.called(one, deciding(one, plan().header().ranks));
    if (status.ok()) status = calls_.add(one);
    const bool isCollective = one.collective != plan::Collective::sendRecv;
    if (status.ok() && isCollective && resources_->net != nullptr) status = compareRemotely();
  }
  if (!status.ok()) failAll(status);
  return status;
}

void CudaDataPath::failAll(const Status& why) {
  abort(why, FailureScope::all);
  if (setup_.failed) setup_.failed(why, FailureScope::all);
}

Status CudaDataPath::compareCalls() {
  std::lock_guard lock(mutex_);
  return calls_.end();
}

Status CudaDataPath::run(std::vector<Task>& tasks, DirectCopies::Announced copies, Stream stream,
                         const Capture& capture) {
  const uint32_t satisfied = provenRequirements(capture.id != 0);
  const uint64_t calledNs = recorder_->isOn() ? nowNanoseconds() : 0;
  DirectCopies::Agreed agreed;
  if (!copies.empty()) {
    const uint64_t until = deadline(tasks, capture.id != 0);
    resources_->copies->consent(copies, until, [&] { return areBuffersUnused(); });
    agreed = resources_->copies->settle(std::move(copies), until);
    watchCopies(!agreed.empty());
    if (!agreed.empty() && !std::exchange(loggedCopies_, true)) logCopies(tasks[agreed.begin()->first]);
  }
  for (size_t i = 0; i < tasks.size(); i++) {
    if ((tasks[i].variant.requires_ & plan::kRequiresPublishedAddresses) == 0 || agreed.contains(i)) continue;
    NCCLRUN_TRY(chooseVariant(plan(), satisfied, tasks[i]));
  }
  const Operation& last = tasks.back().operation;
  telemetry_.begin(last, tasks.back().bytes);
  const bool overNetwork = resources_->net != nullptr;
  if (overNetwork && capture.id != 0) resources_->activity.isCaptured.store(true, std::memory_order_release);
  uint32_t* const pinned = capture.id == 0 ? &resources_->pinned->ended : nullptr;
  launcher_->prepare(overNetwork ? pinned : resources_->order->count(capture), capture.id != 0);
  record(tasks, agreed, capture.id != 0, calledNs);
  Status status = runner_->run(tasks, agreed, {stream, capture.id, satisfied});
  // Order later launches behind this one even after a failure, because operations queued before it use the connections.
  // Do not use a count if other communicators may soon query the order: a wait for a count may block other streams.
  const bool counts = !overNetwork && status.ok() && agreed.empty() && !resources_->share->isWatched();
  Status ordered = resources_->order->after(stream, capture, counts ? launcher_->counted() : std::nullopt);
  if (status.ok()) status = std::move(ordered);
  if (capture.id == 0) resources_->share->coverLaunches();
  if (overNetwork) {
    resources_->activity.launched.store(launcher_->blocks(), std::memory_order_release);
    resources_->net->beginLaunch();
  }
  telemetry_.end(last, status.ok());
  if (!status.ok() && recorder_->isOn()) {
    for (const Task& task : tasks) recorder_->refused(task.record, nowNanoseconds());
  }
  return status;
}

// The GPU runs them: the host sees neither when they begin nor when they end.
void CudaDataPath::record(std::span<Task> tasks, const DirectCopies::Agreed& agreed, bool captured, uint64_t now) {
  if (!recorder_->isOn()) return;
  if (gpuRecorder_ != nullptr && !captured && now > gpuRecorder_->lastReadNs() + kClockReadingNs) readGpuClock(1);
  const auto flags = uint16_t(ncclrunRecordOnGpu | (captured ? ncclrunRecordCaptured : 0) |
                              (tasks.size() > 1 ? ncclrunRecordInGroup : 0));
  for (size_t i = 0; i < tasks.size(); i++) {
    const auto how = uint16_t(flags | (agreed.contains(i) ? ncclrunRecordCopyEngine : 0));
    tasks[i].record = recorder_->enqueued(tasks[i].operation, tasks[i].variant, how, now);
  }
}

// Starts the thread that ends waits of copies, before the first copies and as soon as any peer's buffers are mapped.
void CudaDataPath::watchCopies(bool copies) {
  if (watchesCopies_ || (!copies && !resources_->copies->needsTidying())) return;
  watchesCopies_ = true;
  resources_->copies->engines().endWaitsOn({interrupt(), ownBell(), setup_.telemetry.get(), [this] { tidyBuffers(); }});
}

void CudaDataPath::logCopies(const Task& first) const {
  logInfo(formatSentence("rank %u: copy engines run %s of %llu bytes and later operations", setup_.rank,
                         nameOf(first.operation.collective), static_cast<unsigned long long>(first.bytes)),
          Subsystem::coll);
}

// Deadline until which a call waits for the other ranks. It allows half of the time that the GPU takes for the
// operations, which hides the wait; more in a capture, which happens once; less after failed agreements.
uint64_t CudaDataPath::deadline(std::span<const Task> tasks, bool captured) const {
  const auto& header = plan().header();
  const double min = header.minCopyTimeoutMicroseconds * 1e3;
  double time = min;
  for (const Task& task : tasks) time += predictedMicroseconds(task) * 1000 / 2;
  time = copyTimeout_ >= 0 ? copyTimeout_
         : captured        ? header.capturedCopyTimeoutMicroseconds * 1e3
                           : std::min(time, header.maxCopyTimeoutMicroseconds * 1e3);
  const uint32_t halvings = std::min<uint32_t>(resources_->copies->failures() / 2, 10);
  return nowNanoseconds() + uint64_t(std::max(min, time / (1u << halvings)));
}

}  // namespace ncclrun::cuda
