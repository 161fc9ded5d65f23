#include "cuda/net/gpu_slots.h"

#include <string_view>

#include "base/variables.h"
#include "plan/launch_format.h"

namespace ncclrun::cuda {
namespace {

// What the driver gives at once; also a multiple of every page size that dma-bufs have.
constexpr uint64_t kPieceBytes = 2 << 20;

// Invalid: the driver or the GPU has none, or NCCL_DMABUF_ENABLE=0.
Descriptor dmaBufOf(const Gpu& gpu, Pointer memory, uint64_t bytes) {
  const char* const enabled = ncclVariable("NCCL_DMABUF_ENABLE");
  if (enabled != nullptr && std::string_view(enabled) == "0") return {};
  int isSupported = 0, descriptor = -1;
  driver().deviceGetAttribute(&isSupported, kAttributeDmaBuf, gpu.device);
  if (isSupported == 0) return {};
  if (driver().memGetHandleForAddressRange(&descriptor, memory, bytes, kHandleDmaBuf, 0) != kSuccess) return {};
  return Descriptor(descriptor);
}

}  // namespace

GpuSlots::~GpuSlots() {
  const OnGpu here(gpu_);
  for (Piece& piece : pieces_) {
    piece.dmaBuf.reset();
    driver().memFree(piece.memory);
  }
}

Status GpuSlots::take(uint64_t bytes, Range& out) {
  bytes = inPages(bytes);
  if (bytes > pieceBytes_ - taken_) {
    const uint64_t all = (bytes + kPieceBytes - 1) / kPieceBytes * kPieceBytes;
    Pointer memory = 0;
    NCCLRUN_TRY(statusOf(driver().memAlloc(&memory, all), "slots in the GPU's memory"));
    pieces_.push_back({memory, dmaBufOf(gpu_, memory, all)});
    taken_ = 0;
    pieceBytes_ = all;
    bytes_ += all;
  }
  const Piece& piece = pieces_.back();
  out = {.address = reinterpret_cast<std::byte*>(piece.memory) + taken_,
         .dmaBuf = piece.dmaBuf.valid() ? piece.dmaBuf.get() : -1,
         .offset = taken_};
  taken_ += bytes;
  return {};
}

}  // namespace ncclrun::cuda
