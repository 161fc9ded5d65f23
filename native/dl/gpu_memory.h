// Memory of a GPU, or of the host as a GPU sees it, with its owner.
#pragma once
#include <utility>

#include "dl/gpu.h"

namespace ncclrun::cuda {

class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept
      : gpu_(other.gpu_), pointer_(std::exchange(other.pointer_, 0)), bytes_(other.bytes_) {}
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  // Zeroed, by `stream`.
  Status allocate(const Gpu& gpu, size_t bytes, Stream stream);
  Pointer pointer() const { return pointer_; }
  size_t bytes() const { return bytes_; }

 private:
  Gpu gpu_;
  Pointer pointer_ = 0;
  size_t bytes_ = 0;
};

// Whole pages of this process's memory, pinned.
class PinnedPages {
 public:
  PinnedPages() = default;
  PinnedPages(PinnedPages&& other) noexcept
      : gpu_(other.gpu_), host_(std::exchange(other.host_, nullptr)), pointer_(other.pointer_) {}
  PinnedPages& operator=(PinnedPages&& other) noexcept;
  ~PinnedPages();

  // The pages that hold [address, +bytes).
  Status pin(const Gpu& gpu, void* address, size_t bytes);
  bool pinned() const { return host_ != nullptr; }
  // Of an address in them, as the GPU sees it.
  Pointer pointerTo(const void* address) const {
    return pointer_ + (reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(host_));
  }

 private:
  Gpu gpu_;
  void* host_ = nullptr;
  Pointer pointer_ = 0;  // to the first page
};

// The same of an address whose page stays as long as the process, and may be pinned for several communicators. All
// calls for one page name as many bytes.
Status pinnedForever(const Gpu& gpu, void* address, Pointer& out, size_t bytes = 1);

}  // namespace ncclrun::cuda
