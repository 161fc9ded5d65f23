#include "cuda/cuda_data_path.h"

#include <cstdlib>

#include "datapath/node_barrier.h"

namespace ncclrun::cuda {
namespace {

// NCCLRUN_COPY_TIMEOUT_US in nanoseconds; negative if it is not set.
double configuredTimeout() {
  const char* const value = std::getenv("NCCLRUN_COPY_TIMEOUT_US");
  char* end = nullptr;
  const double microseconds = value == nullptr ? -1 : std::strtod(value, &end);
  return value == nullptr || end == value || *end != '\0' ? -1 : microseconds * 1000;
}

}  // namespace

CudaDataPath::CudaDataPath(const Setup& setup, const Gpu& gpu)
    : setup_(setup),
      resources_(makeResources(gpu, setup.telemetry)),
      telemetry_(setup.telemetry.get()),
      calls_(resources_->plan, resources_->segment, setup.rank),
      remoteCalls_(resources_->plan, setup.rank),
      copyTimeout_(configuredTimeout()) {}

CudaDataPath::~CudaDataPath() {
  if (resources_->netRegions != nullptr) resources_->netRegions->setHandlers(nullptr, nullptr);
  const bool mayBeReplayed = resources_->order != nullptr && resources_->order->everCaptured();
  if (!idle())
    abort({ncclInvalidUsage, "the communicator was destroyed while operations were under way"}, FailureScope::alone);
  if (resources_->copies != nullptr) resources_->copies->engines().stopReporting();
  // While the process certainly goes on: the goodbye takes a while.
  if (!mayBeReplayed) resources_->net.reset();
  if (resources_->net != nullptr) resources_->net->endAtExit();
}

// True if no running or captured operation uses mapped peer buffers.
bool CudaDataPath::areBuffersUnused() const {
  return !resources_->order->everCaptured() && resources_->order->query() == kSuccess;
}

// Does nothing if it would block a call, or if the process exits.
void CudaDataPath::tidyBuffers() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  std::unique_lock alive(freeingMutex(), std::try_to_lock);
  if (!alive.owns_lock()) return;
  const OnGpu here(resources_->gpu);
  resources_->copies->tidy([this] { return areBuffersUnused(); });
}

void CudaDataPath::forgetBuffer(const RegisteredBuffer& buffer) {
  std::lock_guard lock(mutex_);
  if (resources_->copies == nullptr) return;
  const OnGpu here(resources_->gpu);
  resources_->copies->release(buffer.address);
}

Status CudaDataPath::order(ncclrunStream_t later, ncclrunStream_t earlier) {
  const OnGpu here(resources_->gpu);
  Event event = nullptr;
  NCCLRUN_TRY(statusOf(driver().eventCreate(&event, kEventNoTiming), "cuEventCreate"));
  Status status = statusOf(driver().eventRecord(event, reinterpret_cast<Stream>(earlier)), "cuEventRecord");
  if (status.ok())
    status = statusOf(driver().streamWaitEvent(reinterpret_cast<Stream>(later), event, 0), "cuStreamWaitEvent");
  driver().eventDestroy(event);
  return status;
}

void CudaDataPath::abort(const Status& status, FailureScope scope) {
  interrupt().raise(status, Interrupt::kNobody, scope);
  if (resources_->pinned != nullptr) std::atomic_ref(resources_->pinned->aborted).store(2, std::memory_order_release);
}

bool CudaDataPath::idle() const {
  std::lock_guard lock(mutex_);
  if (resources_->order == nullptr) return true;
  const OnGpu here(resources_->gpu);
  return resources_->order->query() != kNotReady;
}

Status CudaDataPath::nodeBarrier() {
  Status status = hostBarrier(
      {.plan = plan(), .segment = resources_->segment, .rank = setup_.rank, .gonePeers = resources_->gonePeers},
      interrupt(), ownBell(), plan().header().spinNanoseconds, telemetry_);
  if (!status.ok() && setup_.failed) setup_.failed(status, interrupt().scope());
  return status;
}

}  // namespace ncclrun::cuda
