// GPU memory for slots that network cards read and write (GPUDirect). Not zeroed: kernels and cards write before
// anybody reads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/descriptor.h"
#include "dl/gpu.h"

namespace ncclrun::cuda {

class GpuSlots {
 public:
  explicit GpuSlots(const Gpu& gpu) : gpu_(gpu) {}
  ~GpuSlots();
  GpuSlots(const GpuSlots&) = delete;
  GpuSlots& operator=(const GpuSlots&) = delete;

  struct Range {
    std::byte* address = nullptr;
    int dmaBuf = -1;      // descriptor, open as long as this object lives; -1: the driver gives none
    uint64_t offset = 0;  // in the dma-buf
  };
  // Whole pages. The GPU is current.
  Status take(uint64_t bytes, Range& out);
  uint64_t bytes() const { return bytes_; }

 private:
  struct Piece {
    Pointer memory;
    Descriptor dmaBuf;
  };
  const Gpu gpu_;
  std::vector<Piece> pieces_;
  uint64_t taken_ = 0, pieceBytes_ = 0;  // of the last piece
  uint64_t bytes_ = 0;
};

}  // namespace ncclrun::cuda
