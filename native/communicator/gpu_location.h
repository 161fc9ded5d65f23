// A communicator's position among those that this process has on a GPU: the plan gives later ones less memory
// (control/planner/device/gpu-buffers.ts).
#pragma once
#include <cstdint>
#include <utility>

namespace ncclrun {

class GpuLocation {
 public:
  GpuLocation() = default;
  // One more, as long as this lives.
  explicit GpuLocation(int device);
  GpuLocation(GpuLocation&& other) noexcept : device_(std::exchange(other.device_, kNone)), before_(other.before_) {}
  GpuLocation& operator=(GpuLocation&& other) noexcept;
  ~GpuLocation();

  // How many there were.
  uint32_t before() const { return before_; }

 private:
  static constexpr int kNone = -1;
  int device_ = kNone;
  uint32_t before_ = 0;
};

}  // namespace ncclrun
