#include "communicator/pointer_check.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>

#include "dl/cuda.h"

namespace ncclrun {
namespace {

using GetAttribute = cuda::Result (*)(void*, int, cuda::Pointer);

// How many libraries the process has loaded so far.
uint64_t loadedLibraries() {
  uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_adds;
        return 1;  // the first one says it for all
      },
      &count);
  return count;
}

// cuPointerGetAttribute of the driver, if the program has loaded it: memory of a GPU comes from nowhere else, and
// programs without GPUs shall not load it for this check. Looked for again only after another library was loaded.
GetAttribute findGetAttribute() {
  static std::atomic<GetAttribute> found{nullptr};
  static std::atomic<uint64_t> lookedAt{0};
  if (const GetAttribute known = found.load(std::memory_order_relaxed); known != nullptr) return known;
  const uint64_t count = loadedLibraries();
  if (lookedAt.exchange(count, std::memory_order_relaxed) == count) return nullptr;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);  // kept open: its function stays
  if (library == nullptr) return nullptr;
  const auto function = reinterpret_cast<GetAttribute>(dlsym(library, "cuPointerGetAttribute"));
  found.store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace

Status checkHostPointer(const char* function, const char* name, const void* pointer) {
  const GetAttribute attribute = findGetAttribute();
  if (attribute == nullptr || pointer == nullptr) return {};
  const auto address = reinterpret_cast<cuda::Pointer>(pointer);
  unsigned type = 0, managed = 0;  // the driver fails for memory that it does not know
  if (attribute(&type, cuda::kPointerMemoryType, address) != cuda::kSuccess || type != cuda::kMemoryDevice) return {};
  if (attribute(&managed, cuda::kPointerIsManaged, address) == cuda::kSuccess && managed != 0) return {};
  int gpu = -1;
  attribute(&gpu, cuda::kPointerDeviceOrdinal, address);
  return {ncclInvalidArgument,
          formatSentence("%s: %s is %p, memory of GPU %d, but the communicator is on the host device, which takes "
                         "buffers in ordinary memory. Unset NCCLRUN_DEVICE or set it to cuda to use the GPU",
                         function, name, pointer, gpu)};
}

}  // namespace ncclrun
