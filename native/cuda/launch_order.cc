#include "cuda/launch_order.h"

namespace ncclrun::cuda {
namespace {

constexpr size_t kCapturesAtOnce = 64;

}  // namespace

LaunchOrder::~LaunchOrder() {
  const OnGpu here(gpu_);
  if (last_ != nullptr) driver().eventDestroy(last_);
  if (marked_ != nullptr) driver().eventDestroy(marked_);
  if (waiting_ != nullptr) driver().streamDestroy(waiting_);
}

Status LaunchOrder::make(Stream stream) {
  NCCLRUN_TRY(statusOf(driver().eventCreate(&last_, kEventNoTiming), "cuEventCreate"));
  return count_.allocate(gpu_, sizeof launched_, stream);
}

// From now on `last_` stands for the launches that were counted.
Status LaunchOrder::recordCounted() {
  if (!counted_) return {};
  const Driver& cuda = driver();
  Status status;
  if (waiting_ == nullptr) status = statusOf(cuda.streamCreate(&waiting_, kStreamNonBlocking), "cuStreamCreate");
  if (!status.ok()) return status;
  const MemoryOperation all{kMemoryWait32, count_.pointer(), launched_, 0, 0, 0};
  status = statusOf(cuda.streamBatchMemoryOperation(waiting_, 1, &all, 0), "cuStreamBatchMemOp");
  if (status.ok()) status = statusOf(cuda.eventRecord(last_, waiting_), "cuEventRecord");
  counted_ = !status.ok();
  return status;
}

Status LaunchOrder::captureOf(Stream stream, Capture& out) {
  int active = kCaptureNone;
  Status status =
      statusOf(driver().streamGetCaptureInfo(stream, &active, &out.id, nullptr, nullptr, nullptr), "the stream");
  if (!status.ok()) return status;
  if (active == kCaptureInvalidated) {
    return {
        ncclInvalidUsage,
        "the stream's capture has failed: an earlier call did what a capture does not allow; end the capture first"};
  }
  if (active != kCaptureActive) out.id = 0;
  out.stream = reinterpret_cast<uintptr_t>(stream);  // as long as a capture goes on, the stream stays
  return {};
}

Status LaunchOrder::before(Stream stream, Capture& capture) {
  std::lock_guard lock(mutex_);
  const Driver& cuda = driver();
  Status status = captureOf(stream, capture);
  if (!status.ok()) return status;
  if (capture.id == 0) {
    if (status = statusOf(cuda.streamGetId(stream, &capture.stream), "cuStreamGetId"); !status.ok()) return status;
    if (lastCapture_.stream == capture.stream && !everCaptured_) return {};
    if (status = recordCounted(); !status.ok()) return status;
    return statusOf(cuda.streamWaitEvent(stream, last_, 0), "cuStreamWaitEvent");
  }
  if (status = recordCounted(); !status.ok()) return status;
  everCaptured_ = true;
  const auto found = captured_.find(capture.id);
  if (found == captured_.end())  // when the graph runs: after what was launched before it
    return statusOf(cuda.streamWaitEvent(stream, last_, kEventWaitExternal), "cuStreamWaitEvent");
  if (found->second.stream == capture.stream) return {};
  return statusOf(cuda.streamUpdateCaptureDependencies(stream, &found->second.node, 1, kCaptureAddDependencies),
                  "cuStreamUpdateCaptureDependencies");
}

Status LaunchOrder::after(Stream stream, const Capture& capture, std::optional<uint32_t> blocks) {
  std::lock_guard lock(mutex_);
  const Driver& cuda = driver();
  if (capture.id == 0) {
    lastCapture_ = capture;
    launched_ = blocks.value_or(0);
    counted_ = blocks.has_value() && !everCaptured_;
    return counted_ ? Status{} : statusOf(cuda.eventRecord(last_, stream), "cuEventRecord");
  }
  const GraphNode* nodes = nullptr;
  size_t count = 0;
  int active = kCaptureNone;
  uint64_t id = 0;
  Graph graph = nullptr;
  Status status =
      statusOf(cuda.streamGetCaptureInfo(stream, &active, &id, &graph, &nodes, &count), "cuStreamGetCaptureInfo");
  if (!status.ok() || count == 0) return status;
  const GraphNode node = nodes[0];
  // Beside the stream's own order: what follows in the graph need not wait for it. A graph records once, at its end.
  const auto found = captured_.find(capture.id);
  Captured now{capture.stream, node, found == captured_.end() ? nullptr : found->second.record};
  if (now.record == nullptr) {
    status = statusOf(cuda.graphAddEventRecordNode(&now.record, graph, &node, 1, last_), "cuGraphAddEventRecordNode");
  } else if (node != found->second.node) {
    status =
        statusOf(cuda.graphRemoveDependencies(graph, &found->second.node, &now.record, 1), "cuGraphRemoveDependencies");
    if (status.ok())
      status = statusOf(cuda.graphAddDependencies(graph, &node, &now.record, 1), "cuGraphAddDependencies");
  }
  if (!status.ok()) return status;
  captured_.insert_or_assign(capture.id, now);
  if (captured_.size() > kCapturesAtOnce) captured_.erase(captured_.begin());  // the oldest
  return {};
}

// No stream of our own waits for them: it might share a queue of the driver with one that they need.
bool LaunchOrder::mark(Stream stream, const Capture& capture) {
  std::lock_guard lock(mutex_);
  if (everCaptured_ || capture.id != 0) return false;
  if (marked_ == nullptr && driver().eventCreate(&marked_, kEventNoTiming) != kSuccess) return false;
  return driver().eventRecord(marked_, stream) == kSuccess;
}

bool LaunchOrder::passedMark() const {
  return marked_ != nullptr && !everCaptured_ && driver().eventQuery(marked_) == kSuccess;
}

Result LaunchOrder::query() {
  std::lock_guard lock(mutex_);
  recordCounted();
  return driver().eventQuery(last_);
}

void LaunchOrder::await() {
  {
    std::lock_guard lock(mutex_);
    recordCounted();
  }
  driver().eventSynchronize(last_);
}

}  // namespace ncclrun::cuda
