#include "dl/gpu_memory.h"

#include <unistd.h>

#include <map>
#include <mutex>

namespace ncclrun::cuda {

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(pointer_, other.pointer_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Memory::~Memory() {
  if (pointer_ == 0) return;
  const OnGpu here(gpu_);
  driver().memFree(pointer_);
}

Status Memory::allocate(const Gpu& gpu, size_t bytes, Stream stream) {
  const OnGpu here(gpu);
  const std::string what = formatSentence("%.1f MiB of the GPU's memory", double(bytes) / (1 << 20));
  if (Status status = statusOf(driver().memAlloc(&pointer_, bytes), what.c_str()); !status.ok()) {
    pointer_ = 0;
    return status;
  }
  gpu_ = gpu;
  bytes_ = bytes;
  return statusOf(driver().memsetD8Async(pointer_, 0, bytes, stream), "cuMemsetD8Async");
}

PinnedPages& PinnedPages::operator=(PinnedPages&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(host_, other.host_);
  std::swap(pointer_, other.pointer_);
  return *this;
}

PinnedPages::~PinnedPages() {
  if (host_ == nullptr) return;
  const OnGpu here(gpu_);
  driver().memHostUnregister(host_);
}

Status PinnedPages::pin(const Gpu& gpu, void* address, size_t bytes) {
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(address) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(address) + bytes + page - 1) / page * page;
  const OnGpu here(gpu);
  void* const host = reinterpret_cast<void*>(first);
  Status status = statusOf(driver().memHostRegister(host, end - first, kHostPortable | kHostMapped),
                           "shared memory of the host cannot be pinned for the GPU");
  if (!status.ok()) return status;
  gpu_ = gpu;
  host_ = host;
  return statusOf(driver().memHostGetDevicePointer(&pointer_, host_, 0), "cuMemHostGetDevicePointer");
}

Status pinnedForever(const Gpu& gpu, void* address, Pointer& out, size_t bytes) {
  static std::mutex mutex;
  static auto& pinned = *new std::map<uintptr_t, PinnedPages>;
  std::lock_guard lock(mutex);
  PinnedPages& pages = pinned[reinterpret_cast<uintptr_t>(address) / uintptr_t(sysconf(_SC_PAGESIZE))];
  if (!pages.pinned()) {
    NCCLRUN_TRY(pages.pin(gpu, address, bytes));
  }
  out = pages.pointerTo(address);
  return {};
}

}  // namespace ncclrun::cuda
