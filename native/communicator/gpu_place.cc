#include "communicator/gpu_place.h"

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

GpuPlace::GpuPlace(int device) : device_(device) {
  std::lock_guard lock(counts().mutex);
  before_ = counts().byDevice[device]++;
}

GpuPlace& GpuPlace::operator=(GpuPlace&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(before_, other.before_);
  return *this;
}

GpuPlace::~GpuPlace() {
  if (device_ == kNone) return;
  std::lock_guard lock(counts().mutex);
  counts().byDevice[device_]--;
}

}  // namespace ncclrun
