#include "cuda/cuda_resources.h"

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "base/thread.h"

namespace ncclrun::cuda {

Resources::~Resources() {
  net.reset();  // says goodbye
  const OnGpu here(gpu);
  if (probed != nullptr) driver().eventDestroy(probed);
  if (stream != nullptr) driver().streamDestroy(stream);
  if (pinned != nullptr) driver().memFreeHost(pinned);
}

// Waits until no kernel uses the resources. Peers' running kernels still store into this GPU's memory; this rank waits
// for a peer that died or keeps its communicator not much longer than an abort takes.
void Resources::awaitIdle() const {
  const OnGpu here(gpu);
  if (order != nullptr) order->await();
  if (stream != nullptr) driver().streamSynchronize(stream);
  if (regions == nullptr) return;
  regions->publishRest();
  constexpr auto kMax = std::chrono::seconds(5);
  const auto until = std::chrono::steady_clock::now() + kMax;
  while (!regions->allRest() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

namespace {

// A callback of the driver for a destroyed graph must not call the driver.
thread_local bool onDriversThread = false;

// Frees the resources on a thread: kernels may wait for peers, and the driver frees memory only when the whole GPU is
// idle, which must not block the caller, who may have more communicators to destroy.
void freeSoon(Resources* resources) {
  std::timed_mutex& mutex = freeingMutex();
  const auto free = [resources, &mutex] {
    resources->awaitIdle();
    std::lock_guard lock(mutex);
    delete resources;
  };
  try {
    startThread("ncclrun-free", free).detach();
  } catch (const std::system_error&) {
    if (!onDriversThread) free();  // else the memory is lost
  }
}

void endHold(void* held) {
  onDriversThread = true;
  delete static_cast<std::shared_ptr<Resources>*>(held);
  onDriversThread = false;
}

}  // namespace

// The driver frees memory only when the whole GPU is idle, for which an exiting process does not wait long.
std::timed_mutex& freeingMutex() {
  static constexpr auto kMaxAtExit = std::chrono::seconds(1);
  static auto& mutex = *new std::timed_mutex;
  static const int registered = std::atexit([] { (void)freeingMutex().try_lock_for(kMaxAtExit); });
  (void)registered;
  return mutex;
}

std::shared_ptr<Resources> makeResources(const Gpu& gpu, std::shared_ptr<ncclrunTelemetrySlot> telemetry) {
  return {new Resources(gpu, std::move(telemetry)), freeSoon};
}

Status RetainedCaptures::retain(const std::shared_ptr<Resources>& resources, Stream stream, uint64_t capture) {
  constexpr size_t kRemembered = 64;
  if (capture == 0 || latest_.contains(capture)) return {};
  const Driver& cuda = driver();
  Graph graph = nullptr;
  int active = kCaptureNone;
  uint64_t id = 0;
  UserObject object = nullptr;
  Status status =
      statusOf(cuda.streamGetCaptureInfo(stream, &active, &id, &graph, nullptr, nullptr), "cuStreamGetCaptureInfo");
  if (!status.ok()) return status;
  auto held = std::make_unique<std::shared_ptr<Resources>>(resources);
  status = statusOf(cuda.userObjectCreate(&object, held.get(), endHold, 1, kUserObjectNoDestructorSync),
                    "cuUserObjectCreate");
  if (!status.ok()) return status;
  held.release();
  status = statusOf(cuda.graphRetainUserObject(graph, object, 1, kGraphTakesReference), "cuGraphRetainUserObject");
  if (!status.ok()) {
    cuda.userObjectRelease(object, 1);
    return status;
  }
  latest_.insert(capture);
  if (latest_.size() > kRemembered) latest_.erase(latest_.begin());
  return {};
}

}  // namespace ncclrun::cuda
