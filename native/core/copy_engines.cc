#include "core/copy_engines.h"

#include <algorithm>
#include <chrono>

#include "core/clock.h"
#include "core/telemetry.h"
#include "core/thread.h"

namespace ncclrun::cuda {

CopyEngines::CopyEngines(const Gpu& gpu, const PlanView& plan, const Segment& segment, uint32_t rank,
                         const PinnedPages& words)
    : gpu_(gpu), segment_(segment), rank_(rank), ranks_(plan.header().ranks), pinned_(words) {
  for (uint32_t one = 0; one < ranks_; one++) locals_[one] = plan.peer(one).localIndex;
}

CopyEngines::~CopyEngines() {
  if (watch_.joinable()) {
    ends_.store(true, std::memory_order_seq_cst);
    bell_->sequence.fetch_add(1, std::memory_order_seq_cst);
    futexWakeAll(bell_->sequence);
    watch_.join();
  }
  const OnGpu here(gpu_);
  for (const auto& lines : lines_) {
    if (lines->forked != nullptr) driver().eventDestroy(lines->forked);
    for (const Line& line : lines->all) {
      if (line.joined != nullptr) driver().eventDestroy(line.joined);
      if (line.stream != nullptr) driver().streamDestroy(line.stream);
    }
  }
}

bool CopyEngines::isCaptured(const Lines& lines) {
  return std::any_of(lines.all.begin(), lines.all.end(), [](const Line& line) {
    int state = kCaptureNone;
    uint64_t id = 0;
    return line.stream != nullptr &&
           (driver().streamGetCaptureInfo(line.stream, &state, &id, nullptr, nullptr, nullptr) != kSuccess ||
            state != kCaptureNone);
  });
}

Status CopyEngines::takeLines(uint64_t capture) {
  if (lines_.empty()) lines_.push_back(std::make_unique<Lines>());
  current_ = nullptr;
  for (const auto& lines : lines_) {
    if (current_ == nullptr && lines->capture == capture) current_ = lines.get();
  }
  // Those of a capture that has ended.
  for (size_t i = 1; i < lines_.size() && current_ == nullptr; i++) {
    if (!isCaptured(*lines_[i])) current_ = lines_[i].get();
  }
  if (current_ == nullptr) current_ = lines_.emplace_back(std::make_unique<Lines>()).get();
  current_->capture = capture;
  if (current_->forked != nullptr) return {};
  return statusOf(driver().eventCreate(&current_->forked, kEventNoTiming), "cuEventCreate");
}

Status CopyEngines::makeLine(Line& line) {
  if (line.joined != nullptr) return {};
  if (Status status = statusOf(driver().streamCreate(&line.stream, kStreamNonBlocking), "cuStreamCreate"); !status.ok())
    return status;
  return statusOf(driver().eventCreate(&line.joined, kEventNoTiming), "cuEventCreate");
}

MemoryOperation CopyEngines::operation(int what, uint32_t& word, uint32_t value) const {
  return {what, pinned_.pointerTo(&word), value, 0, 0, 0};
}

void CopyEngines::await(std::vector<MemoryOperation>& batch, uint32_t& word) const {
  batch.push_back(operation(kMemoryWait32, word, 1));
  batch.push_back(operation(kMemoryWrite32, word, 0));
}

Status CopyEngines::run(const std::vector<MemoryOperation>& batch, Stream stream) const {
  if (batch.empty()) return {};
  return statusOf(driver().streamBatchMemoryOperation(stream, unsigned(batch.size()), batch.data(), 0),
                  "cuStreamBatchMemOp");
}

Status CopyEngines::begin(const CopyProgram& program, Stream stream, uint64_t capture) {
  if (Status status = takeLines(capture); !status.ok()) return status;
  std::vector<MemoryOperation> batch{operation(kMemoryWrite32, busy(), 1)};
  for (const CopySender& sender : program.senders) {
    batch.push_back(operation(kMemoryWrite32, words(sender.peer, rank_).ready, 1));
    bytes_[sender.peer].received += sender.bytes;
  }
  std::array<bool, kMaxPeers> awaited{};
  for (const CopyStage& stage : program.stages) {
    for (const Copy& copy : stage.copies) {
      if (program.apart || copy.peer == rank_ || awaited[copy.peer]) continue;
      awaited[copy.peer] = true;
      await(batch, words(rank_, copy.peer).ready);
    }
  }
  Status status = run(batch, stream);
  for (const CopyStage& stage : program.stages) {
    if (status.ok()) status = beginStage(program, stage, stream);
  }
  return status;
}

Status CopyEngines::beginStage(const CopyProgram& program, const CopyStage& stage, Stream stream) {
  std::vector<MemoryOperation> batch;
  for (const Arrival& arrival : stage.after) await(batch, words(arrival.peer, rank_).arrived[arrival.part]);
  if (Status status = run(batch, stream); !status.ok()) return status;
  if (stage.copies.empty()) return {};
  if (Status status = statusOf(driver().eventRecord(current_->forked, stream), "cuEventRecord"); !status.ok())
    return status;
  std::array<bool, kMaxPeers> follows{};
  for (const Copy& copy : stage.copies) {
    Line& line = current_->all[copy.peer];
    Status status = makeLine(line);
    if (status.ok() && !follows[copy.peer])
      status = statusOf(driver().streamWaitEvent(line.stream, current_->forked, 0), "cuStreamWaitEvent");
    follows[copy.peer] = true;
    if (status.ok()) status = begin(copy, program.apart);
    if (!status.ok()) return status;
  }
  return {};
}

Status CopyEngines::begin(const Copy& copy, bool apart) {
  Line& line = current_->all[copy.peer];
  line.used = true;
  Status status;
  if (apart && copy.peer != rank_) {
    std::vector<MemoryOperation> batch;
    await(batch, words(rank_, copy.peer).ready);
    status = run(batch, line.stream);
  }
  if (status.ok() && copy.bytes > 0)
    status = statusOf(driver().memcpyAsync(copy.to, copy.from, copy.bytes, line.stream), "cuMemcpyAsync");
  if (copy.peer == rank_ || !status.ok()) return status;
  bytes_[copy.peer].sent += copy.bytes;
  if (copy.part == kNotTold) return status;
  return run({operation(kMemoryWrite32, words(rank_, copy.peer).arrived[copy.part], 1)}, line.stream);
}

Status CopyEngines::end(const CopyProgram& program, Stream stream) {
  Status status;
  for (Line& line : current_->all) {
    if (!line.used) continue;
    line.used = false;
    if (status.ok()) status = statusOf(driver().eventRecord(line.joined, line.stream), "cuEventRecord");
    if (status.ok()) status = statusOf(driver().streamWaitEvent(stream, line.joined, 0), "cuStreamWaitEvent");
  }
  if (!status.ok()) return status;
  std::vector<MemoryOperation> batch;
  for (const Arrival& arrival : program.last) await(batch, words(arrival.peer, rank_).arrived[arrival.part]);
  batch.push_back(operation(kMemoryWrite32, busy(), 0));
  return run(batch, stream);
}

void CopyEngines::endWaits() const {
  const auto raise = [](uint32_t& word) { std::atomic_ref(word).store(1, std::memory_order_release); };
  for (uint32_t peer = 0; peer < ranks_; peer++) {
    if (peer == rank_) continue;
    raise(words(rank_, peer).ready);
    for (uint32_t& word : words(peer, rank_).arrived) raise(word);
  }
}

// Whether a program is under way; one that was before, too, waits for somebody, who may have died.
bool CopyEngines::tell(bool wasBusy) {
  const bool isBusy = std::atomic_ref(busy()).load(std::memory_order_acquire) != 0;
  std::lock_guard lock(telling_);
  Telemetry telemetry(telemetry_);
  if (isBusy && wasBusy) telemetry.waitingIdly(nowNanoseconds());
  if (!isBusy && wasBusy) telemetry.rested();
  return isBusy;
}

void CopyEngines::tellNobody() {
  std::lock_guard lock(telling_);
  telemetry_ = nullptr;
}

bool CopyEngines::endWaitsOn(const Interrupt& interrupt, Doorbell& bell, ncclrunTelemetrySlot* telemetry) {
  if (watch_.joinable()) return false;
  bell_ = &bell;
  telemetry_ = telemetry;
  watch_ = startThread("ncclrun-copies", [this, &interrupt, &bell] {
    constexpr auto kBetween = std::chrono::microseconds(100);  // what a wait that ends makes 0 is raised again
    constexpr uint64_t kLook = 10'000'000, kLookIdle = 100'000'000;
    bool isBusy = false;
    while (!ends_.load(std::memory_order_seq_cst)) {
      if (interrupt.raised()) {
        endWaits();
        std::this_thread::sleep_for(kBetween);
        continue;
      }
      const uint32_t seen = bell.sequence.load(std::memory_order_seq_cst);
      bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
      if (!interrupt.raised() && !ends_.load(std::memory_order_seq_cst))
        futexWait(bell.sequence, seen, isBusy ? kLook : kLookIdle);
      bell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
      isBusy = tell(isBusy);
    }
  });
  return true;
}

}  // namespace ncclrun::cuda
