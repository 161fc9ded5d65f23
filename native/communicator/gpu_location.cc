#include "communicator/gpu_location.h"

#include <map>
#include <mutex>

namespace ncclrun {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<int, uint32_t> byDevice;
};

Counts& counts() {
  static auto* const all = new Counts;  // never destroyed: communicators may end while the process does
  return *all;
}

}  // namespace

GpuLocation::GpuLocation(int device) : device_(device) {
  std::lock_guard lock(counts().mutex);
  before_ = counts().byDevice[device]++;
}

GpuLocation& GpuLocation::operator=(GpuLocation&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(before_, other.before_);
  return *this;
}

GpuLocation::~GpuLocation() {
  if (device_ == kNone) return;
  std::lock_guard lock(counts().mutex);
  counts().byDevice[device_]--;
}

}  // namespace ncclrun
