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

// Within a GPU's own memory. What lies in a row the driver has a kernel copy, on all multiprocessors; meanwhile nothing
// that a copy engine has under way gets on. Several rows are a copy engine's.
Status copyWithin(Pointer to, Pointer from, size_t bytes, Stream stream) {
  constexpr size_t kRow = 256 << 10;
  const size_t rows = bytes / kRow, rest = bytes % kRow;
  if (rows < 2) return statusOf(driver().memcpyAsync(to, from, bytes, stream), "cuMemcpyAsync");
  Status status = copyRows(to, from, kRow, rows, stream);
  if (!status.ok() || rest == 0) return status;
  const size_t half = (rest + 1) / 2, begin = bytes - 2 * half;  // a byte may come twice
  return copyRows(to + begin, from + begin, half, 2, stream);
}

}  // namespace

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

// The one whom all copies to others go to, if no kernels have to run beside them: to another stream and back takes a
// GPU microseconds, which the rank's own copy, a shorter one, can spend beside it.
uint32_t CopyEngines::onlyPeer(const CopyProgram& program) const {
  if (program.apart || program.stages.size() != 1) return rank_;
  uint32_t only = rank_;
  for (const Copy& copy : program.stages[0].copies) {
    if (copy.peer == rank_ || copy.peer == only) continue;
    if (only != rank_) return rank_;
    only = copy.peer;
  }
  return only;
}

Status CopyEngines::begin(const CopyProgram& program, Stream stream, uint64_t capture) {
  if (Status status = takeLines(capture); !status.ok()) return status;
  stream_ = stream;
  next_.clear();
  for (Line& line : current_->all) line.used = false;  // of a program that failed
  onStream_ = onlyPeer(program);
  next_.push_back(operation(kMemoryWrite32, busy(), 1));
  for (const CopySender& sender : program.senders) {
    if (!program.met) next_.push_back(operation(kMemoryWrite32, words(sender.peer, rank_).ready, 1));
    bytes_[sender.peer].received += sender.bytes;
  }
  std::array<bool, kMaxPeers> awaited{};
  for (const CopyStage& stage : program.stages) {
    for (const Copy& copy : stage.copies) {
      if (program.apart || program.met || copy.peer == rank_ || std::exchange(awaited[copy.peer], true)) continue;
      await(next_, words(rank_, copy.peer).ready);
    }
  }
  Status status;
  for (const CopyStage& stage : program.stages) {
    for (const Arrival& arrival : stage.after) await(next_, words(arrival.peer, rank_).arrived[arrival.part]);
    if (status.ok()) status = begin(program, stage);
  }
  // Beside what comes on the stream until end(); else nothing comes there, and the last words join those of the end.
  return status.ok() && program.apart ? runNext() : status;
}

bool CopyEngines::isForked() const {
  return std::any_of(current_->all.begin(), current_->all.end(), [](const Line& line) { return line.used; });
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
    Line& line = current_->all[copy.peer];
    if (status.ok()) status = makeLine(line);
    if (status.ok()) status = statusOf(driver().streamWaitEvent(line.stream, current_->forked, 0), "cuStreamWaitEvent");
    if (!status.ok()) return status;
    line.used = true;
  }
  for (const Copy& copy : stage.copies) {
    if (status.ok()) status = begin(copy, program.apart);
  }
  return status;
}

Status CopyEngines::begin(const Copy& copy, bool apart) {
  const Stream stream = isOnStream(copy) ? stream_ : current_->all[copy.peer].stream;
  if (copy.peer == rank_) return copyWithin(copy.to, copy.from, copy.bytes, stream);
  CopyWords& way = words(rank_, copy.peer);
  Status status;
  if (isOnStream(copy)) status = runNext();
  if (apart) {
    std::vector<MemoryOperation> batch;
    await(batch, way.ready);
    status = run(batch, stream);
  }
  if (status.ok() && copy.bytes > 0)
    status = statusOf(driver().memcpyAsync(copy.to, copy.from, copy.bytes, stream), "cuMemcpyAsync");
  if (!status.ok()) return status;
  bytes_[copy.peer].sent += copy.bytes;
  if (copy.part == kNotTold) return status;
  const MemoryOperation tells = operation(kMemoryWrite32, way.arrived[copy.part], 1);
  if (!isOnStream(copy)) return run({tells}, stream);
  // Beside another copy nothing may come in between: a graph's copies run one after the other then.
  next_.push_back(tells);
  return isForked() ? runNext() : status;
}

Status CopyEngines::end(const CopyProgram& program) {
  Status status;
  for (Line& line : current_->all) {
    if (!std::exchange(line.used, false)) continue;
    if (status.ok()) status = statusOf(driver().eventRecord(line.joined, line.stream), "cuEventRecord");
    if (status.ok()) status = statusOf(driver().streamWaitEvent(stream_, line.joined, 0), "cuStreamWaitEvent");
  }
  if (!status.ok()) return status;
  for (const Arrival& arrival : program.last) await(next_, words(arrival.peer, rank_).arrived[arrival.part]);
  next_.push_back(operation(kMemoryWrite32, busy(), 0));
  return runNext();
}

Status CopyEngines::meet(Stream stream, uint64_t bytes) {
  std::vector<MemoryOperation> batch{operation(kMemoryWrite32, busy(), 1)};
  forEachPeer([&](uint32_t peer) {
    batch.push_back(operation(kMemoryWrite32, words(peer, rank_).ready, 1));
    bytes_[peer].sent += bytes;
    bytes_[peer].received += bytes;
  });
  forEachPeer([&](uint32_t peer) { await(batch, words(rank_, peer).ready); });
  return run(batch, stream);
}

Status CopyEngines::part(Stream stream) const {
  std::vector<MemoryOperation> batch;
  forEachPeer([&](uint32_t peer) { batch.push_back(operation(kMemoryWrite32, words(rank_, peer).arrived[0], 1)); });
  forEachPeer([&](uint32_t peer) { await(batch, words(peer, rank_).arrived[0]); });
  batch.push_back(operation(kMemoryWrite32, busy(), 0));
  return run(batch, stream);
}

void CopyEngines::endWaits() const {
  const auto raise = [](uint32_t& word) { std::atomic_ref(word).store(1, std::memory_order_release); };
  forEachPeer([&](uint32_t peer) {
    raise(words(rank_, peer).ready);
    for (uint32_t& word : words(peer, rank_).arrived) raise(word);
  });
}

// Whether a program is under way; one that was before, too, waits for somebody, who may have died.
bool CopyEngines::tell(bool wasBusy) {
  const bool isBusy = std::atomic_ref(busy()).load(std::memory_order_acquire) != 0;
  std::lock_guard lock(telling_);
  Telemetry telemetry(telemetry_);
  if (isBusy && wasBusy) telemetry.waitingIdly(nowNanoseconds());
  if (!isBusy && wasBusy) telemetry.rested();
  if (!isBusy && nowAndThen_) nowAndThen_();
  return isBusy;
}

void CopyEngines::tellNobody() {
  std::lock_guard lock(telling_);
  telemetry_ = nullptr;
  nowAndThen_ = nullptr;
}

void CopyEngines::endWaitsOn(const Watch& watch) {
  bell_ = &watch.bell;
  telemetry_ = watch.telemetry;
  nowAndThen_ = watch.nowAndThen;
  watch_ = startThread("ncclrun-copies", [this, &interrupt = watch.interrupt, &bell = watch.bell] {
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
}

}  // namespace ncclrun::cuda
