// Which blocks are on a GPU's SMs. Each has room for one block of the engine's kernels; blocks come to
// them in the order in which their launches did, and stay until they end. A launch that waits for others without having
// a block there hangs here as it would on a GPU.
#pragma once
#include <cstdint>

namespace stand_in {

inline constexpr uint32_t kSms = 132;

// Of one launch, from when its stream has come to it.
class Residency {
 public:
  Residency(int device, uint32_t blocks);
  ~Residency();
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  // How many more of its blocks begin now.
  uint32_t admit();
  // So many of them have ended.
  void leave(uint32_t blocks);

 private:
  const int device_;
  uint32_t waiting_;       // blocks that have not begun
  uint32_t resident_ = 0;  // that have not ended
};

}  // namespace stand_in
