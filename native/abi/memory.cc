// Memory for buffers: of the current GPU, on the host device whole pages of this process.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "abi/call.h"
#include "communicator/device_choice.h"

using namespace ncclrun;

namespace {

struct Allocation {
  size_t bytes;
  std::optional<cuda::Gpu> gpu;
};

// By address.
struct Allocations {
  std::mutex mutex;
  std::map<void*, Allocation> all;
};

Allocations& allocations() {
  static auto* const all = new Allocations;  // never destroyed: programs may free while the process ends
  return *all;
}

}  // namespace

NCCLRUN_EXPORT ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  return ncclrunMemAlloc(ptr, size, ncclrunDeviceAutomatic);
}
NCCLRUN_TWIN(ncclMemAlloc);

NCCLRUN_EXPORT ncclResult_t ncclrunMemAlloc(void** ptr, size_t size, ncclrunDevice_t device) {
  return call("ncclMemAlloc", [&] {
    if (const auto bad = checkPointer("ncclMemAlloc", "ptr", ptr); bad != ncclSuccess) return bad;
    *ptr = nullptr;
    if (size == 0) return ncclSuccess;
    std::optional<cuda::Gpu> gpu;
    if (Status status = chooseDevice(device, gpu); !status.ok()) return fail(status);
    if (gpu.has_value()) {
      cuda::Pointer memory = 0;
      const Status status = cuda::statusOf(cuda::driver().memAlloc(&memory, size), "ncclMemAlloc");
      if (!status.ok()) return fail(status);
      *ptr = reinterpret_cast<void*>(memory);
    } else {
      void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED)
        return fail(ncclSystemError, "ncclMemAlloc: the system gives no %zu bytes: %s", size, strerror(errno));
      *ptr = memory;
    }
    const std::lock_guard lock(allocations().mutex);
    allocations().all.insert_or_assign(*ptr, Allocation{size, gpu});
    return ncclSuccess;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclMemFree(void* ptr) {
  return call("ncclMemFree", [&] {
    if (ptr == nullptr) return ncclSuccess;
    const std::lock_guard lock(allocations().mutex);
    const auto found = allocations().all.find(ptr);
    if (found == allocations().all.end())
      return fail(ncclInvalidArgument, "ncclMemFree: %p did not come from ncclMemAlloc, or was freed before", ptr);
    const Allocation allocation = found->second;
    allocations().all.erase(found);
    if (!allocation.gpu.has_value()) {
      munmap(ptr, allocation.bytes);
      return ncclSuccess;
    }
    const cuda::OnGpu there(*allocation.gpu);
    const Status status = cuda::statusOf(cuda::driver().memFree(reinterpret_cast<cuda::Pointer>(ptr)), "ncclMemFree");
    return status.ok() ? ncclSuccess : fail(status);
  });
}
NCCLRUN_TWIN(ncclMemFree);
