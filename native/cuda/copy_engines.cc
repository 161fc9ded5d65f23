#include "cuda/copy_engines.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"
#include "datapath/telemetry.h"

namespace ncclrun::cuda {
namespace {

Status copyRows(Pointer to, Pointer from, size_t width, size_t rows, Stream stream) {
  RowsCopy copy{};
  copy.from.memory = copy.to.memory = kMemoryUnified;
  copy.from.pointer = from;
  copy.to.pointer = to;
  copy.from.pitch = copy.to.pitch = copy.width = width;
  copy.rows = rows;
  return statusOf(driver().memcpyRowsAsync(&copy, stream), "cuMemcpy2DAsync");
}

// Copies within a GPU's own memory. The driver copies a single row by a kernel on all SMs, which stalls all copy
// engines meanwhile; a copy engine copies several rows.
Status copyWithin(Pointer to, Pointer from, size_t bytes, Stream stream) {
  constexpr size_t kRow = 256 << 10;
  const size_t rows = bytes / kRow, rest = bytes % kRow;
  if (rows < 2) return statusOf(driver().memcpyAsync(to, from, bytes, stream), "cuMemcpyAsync");
  Status status = copyRows(to, from, kRow, rows, stream);
  if (!status.ok() || rest == 0) return status;
  const size_t half = (rest + 1) / 2, begin = bytes - 2 * half;  // a byte may be copied twice
  return copyRows(to + begin, from + begin, half, 2, stream);
}

}  // namespace

CopyEngines::CopyEngines(const Gpu& gpu, const PlanView& plan, const Segment& segment, uint32_t rank,
                         const PinnedPages& flags)
    : gpu_(gpu), segment_(segment), rank_(rank), ranks_(plan.header().ranks), pinned_(flags) {
  for (uint32_t one = 0; one < ranks_; one++) locals_[one] = plan.peer(one).localIndex;
}

CopyEngines::~CopyEngines() {
  if (watch_.joinable()) {
    stopping_.store(true, std::memory_order_seq_cst);
    bell_->sequence.fetch_add(1, std::memory_order_seq_cst);
    futexWakeAll(bell_->sequence);
    watch_.join();
  }
  const OnGpu here(gpu_);
  for (const auto& streams : streams_) {
    if (streams->forked != nullptr) driver().eventDestroy(streams->forked);
    for (const PeerStream& peerStream : streams->all) {
      if (peerStream.joined != nullptr) driver().eventDestroy(peerStream.joined);
      if (peerStream.stream != nullptr) driver().streamDestroy(peerStream.stream);
    }
  }
}

bool CopyEngines::isCaptured(const Streams& streams) {
  return std::any_of(streams.all.begin(), streams.all.end(), [](const PeerStream& peerStream) {
    int state = kCaptureNone;
    uint64_t id = 0;
    return peerStream.stream != nullptr &&
           (driver().streamGetCaptureInfo(peerStream.stream, &state, &id, nullptr, nullptr, nullptr) != kSuccess ||
            state != kCaptureNone);
  });
}

Status CopyEngines::takeStreams(uint64_t capture) {
  if (streams_.empty()) streams_.push_back(std::make_unique<Streams>());
  current_ = nullptr;
  for (const auto& streams : streams_) {
    if (current_ == nullptr && streams->capture == capture) current_ = streams.get();
  }
  // Reuses the streams of a capture that has ended.
  for (size_t i = 1; i < streams_.size() && current_ == nullptr; i++) {
    if (!isCaptured(*streams_[i])) current_ = streams_[i].get();
  }
  if (current_ == nullptr) current_ = streams_.emplace_back(std::make_unique<Streams>()).get();
  current_->capture = capture;
  if (current_->forked != nullptr) return {};
  return statusOf(driver().eventCreate(&current_->forked, kEventNoTiming), "cuEventCreate");
}

Status CopyEngines::makeStream(PeerStream& peerStream) {
  if (peerStream.joined != nullptr) return {};
  NCCLRUN_TRY(statusOf(driver().streamCreate(&peerStream.stream, kStreamNonBlocking), "cuStreamCreate"));
  return statusOf(driver().eventCreate(&peerStream.joined, kEventNoTiming), "cuEventCreate");
}

MemoryOperation CopyEngines::operation(int what, uint32_t& flag, uint32_t value) const {
  return {what, pinned_.pointerTo(&flag), value, 0, 0, 0};
}

void CopyEngines::await(std::vector<MemoryOperation>& batch, uint32_t& flag) const {
  batch.push_back(operation(kMemoryWait32, flag, 1));
  batch.push_back(operation(kMemoryWrite32, flag, 0));
}

Status CopyEngines::runNext() {
  Status status = run(next_, stream_);
  next_.clear();
  return status;
}

Status CopyEngines::run(const std::vector<MemoryOperation>& batch, Stream stream) const {
  if (batch.empty()) return {};
  return statusOf(driver().streamBatchMemoryOperation(stream, unsigned(batch.size()), batch.data(), 0),
                  "cuStreamBatchMemOp");
}

// The only peer of a program's copies, if no kernels have to run beside them. Its copies stay on the caller's stream: a
// fork and join take a GPU microseconds, which only the rank's own, shorter copy has to pay.
uint32_t CopyEngines::onlyPeer(const CopyProgram& program) const {
  if (program.independent || program.stages.size() != 1) return rank_;
  uint32_t only = rank_;
  for (const Copy& copy : program.stages[0].copies) {
    if (copy.peer == rank_ || copy.peer == only) continue;
    if (only != rank_) return rank_;
    only = copy.peer;
  }
  return only;
}

Status CopyEngines::begin(const CopyProgram& program, Stream stream, uint64_t capture) {
  NCCLRUN_TRY(takeStreams(capture));
  stream_ = stream;
  next_.clear();
  for (PeerStream& peerStream : current_->all) peerStream.used = false;  // left by a program that failed
  onStream_ = onlyPeer(program);
  next_.push_back(operation(kMemoryWrite32, busy(), 1));
  for (const CopySender& sender : program.senders) {
    if (!program.peersReady) next_.push_back(operation(kMemoryWrite32, flags(sender.peer, rank_).ready, 1));
    bytes_[sender.peer].received += sender.bytes;
  }
  std::array<bool, kMaxPeers> awaited{};
  for (const CopyStage& stage : program.stages) {
    for (const Copy& copy : stage.copies) {
      if (program.independent || program.peersReady || copy.peer == rank_ || std::exchange(awaited[copy.peer], true))
        continue;
      await(next_, flags(rank_, copy.peer).ready);
    }
  }
  Status status;
  for (const CopyStage& stage : program.stages) {
    for (const Arrival& arrival : stage.after) await(next_, flags(arrival.peer, rank_).arrived[arrival.part]);
    if (status.ok()) status = begin(program, stage);
  }
  // The caller queues nothing until end() unless the program is independent, so the last flags can join those of end().
  return status.ok() && program.independent ? runNext() : status;
}

bool CopyEngines::isForked() const {
  return std::any_of(current_->all.begin(), current_->all.end(),
                     [](const PeerStream& peerStream) { return peerStream.used; });
}

Status CopyEngines::begin(const CopyProgram& program, const CopyStage& stage) {
  std::array<bool, kMaxPeers> follows{};
  bool forks = false;
  Status status;
  for (const Copy& copy : stage.copies) {
    if (isOnStream(copy) || std::exchange(follows[copy.peer], true)) continue;
    if (!std::exchange(forks, true)) {
      status = runNext();
      if (status.ok()) status = statusOf(driver().eventRecord(current_->forked, stream_), "cuEventRecord");
    }
    PeerStream& peerStream = current_->all[copy.peer];
    if (status.ok()) status = makeStream(peerStream);
    if (status.ok())
      status = statusOf(driver().streamWaitEvent(peerStream.stream, current_->forked, 0), "cuStreamWaitEvent");
    if (!status.ok()) return status;
    peerStream.used = true;
  }
  for (const Copy& copy : stage.copies) {
    if (status.ok()) status = begin(copy, program.independent);
  }
  return status;
}

Status CopyEngines::begin(const Copy& copy, bool independent) {
  const Stream stream = isOnStream(copy) ? stream_ : current_->all[copy.peer].stream;
  if (copy.peer == rank_) return copyWithin(copy.to, copy.from, copy.bytes, stream);
  CopyFlags& peerFlags = flags(rank_, copy.peer);
  Status status;
  if (isOnStream(copy)) status = runNext();
  if (independent) {
    std::vector<MemoryOperation> batch;
    await(batch, peerFlags.ready);
    status = run(batch, stream);
  }
  if (status.ok() && copy.bytes > 0)
    status = statusOf(driver().memcpyAsync(copy.to, copy.from, copy.bytes, stream), "cuMemcpyAsync");
  if (!status.ok()) return status;
  bytes_[copy.peer].sent += copy.bytes;
  if (copy.part == kNotSignalled) return status;
  const MemoryOperation signal = operation(kMemoryWrite32, peerFlags.arrived[copy.part], 1);
  if (!isOnStream(copy)) return run({signal}, stream);
  // Between two concurrent copies nothing may be queued, or a graph runs them one after the other.
  next_.push_back(signal);
  return isForked() ? runNext() : status;
}

Status CopyEngines::end(const CopyProgram& program) {
  Status status;
  for (PeerStream& peerStream : current_->all) {
    if (!std::exchange(peerStream.used, false)) continue;
    if (status.ok()) status = statusOf(driver().eventRecord(peerStream.joined, peerStream.stream), "cuEventRecord");
    if (status.ok()) status = statusOf(driver().streamWaitEvent(stream_, peerStream.joined, 0), "cuStreamWaitEvent");
  }
  if (!status.ok()) return status;
  for (const Arrival& arrival : program.last) await(next_, flags(arrival.peer, rank_).arrived[arrival.part]);
  next_.push_back(operation(kMemoryWrite32, busy(), 0));
  return runNext();
}

Status CopyEngines::beginReads(Stream stream, uint64_t bytes) {
  std::vector<MemoryOperation> batch{operation(kMemoryWrite32, busy(), 1)};
  forEachPeer([&](uint32_t peer) {
    batch.push_back(operation(kMemoryWrite32, flags(peer, rank_).ready, 1));
    bytes_[peer].sent += bytes;
    bytes_[peer].received += bytes;
  });
  forEachPeer([&](uint32_t peer) { await(batch, flags(rank_, peer).ready); });
  return run(batch, stream);
}

Status CopyEngines::endReads(Stream stream) const {
  std::vector<MemoryOperation> batch;
  forEachPeer([&](uint32_t peer) { batch.push_back(operation(kMemoryWrite32, flags(rank_, peer).arrived[0], 1)); });
  forEachPeer([&](uint32_t peer) { await(batch, flags(peer, rank_).arrived[0]); });
  batch.push_back(operation(kMemoryWrite32, busy(), 0));
  return run(batch, stream);
}

void CopyEngines::endWaits() const {
  const auto raise = [](uint32_t& flag) { std::atomic_ref(flag).store(1, std::memory_order_release); };
  forEachPeer([&](uint32_t peer) {
    raise(flags(rank_, peer).ready);
    for (uint32_t& flag : flags(peer, rank_).arrived) raise(flag);
  });
}

// Returns true while a program is running. One that was running before, too, waits for a peer, which may have died.
bool CopyEngines::report(bool wasBusy) {
  const bool isBusy = std::atomic_ref(busy()).load(std::memory_order_acquire) != 0;
  std::lock_guard lock(reportMutex_);
  Telemetry telemetry(telemetry_);
  if (isBusy && wasBusy) telemetry.waitingIdly(nowNanoseconds());
  if (!isBusy && wasBusy) telemetry.rested();
  if (!isBusy && nowAndThen_) nowAndThen_();
  return isBusy;
}

void CopyEngines::stopReporting() {
  std::lock_guard lock(reportMutex_);
  telemetry_ = nullptr;
  nowAndThen_ = nullptr;
}

void CopyEngines::endWaitsOn(const Watch& watch) {
  bell_ = &watch.bell;
  telemetry_ = watch.telemetry;
  nowAndThen_ = watch.nowAndThen;
  watch_ = startThread("ncclrun-copies", [this, &interrupt = watch.interrupt, &bell = watch.bell] {
    constexpr auto kBetween = std::chrono::microseconds(100);  // a wait that ends clears its flag, so raise it again
    constexpr uint64_t kLook = 10'000'000, kLookIdle = 100'000'000;
    bool isBusy = false;
    while (!stopping_.load(std::memory_order_seq_cst)) {
      if (interrupt.raised()) {
        endWaits();
        std::this_thread::sleep_for(kBetween);
        continue;
      }
      const uint32_t seen = bell.sequence.load(std::memory_order_seq_cst);
      bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
      if (!interrupt.raised() && !stopping_.load(std::memory_order_seq_cst))
        futexWait(bell.sequence, seen, isBusy ? kLook : kLookIdle);
      bell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
      isBusy = report(isBusy);
    }
  });
}

}  // namespace ncclrun::cuda
