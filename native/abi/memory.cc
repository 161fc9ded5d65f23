// Memory for buffers. On the host device: whole pages of this process.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "abi/call.h"

using namespace ncclrun;

namespace {

// Bytes of what is allocated, by address.
struct Allocations {
  std::mutex mutex;
  std::map<void*, size_t> bytes;
};

Allocations& allocations() {
  static auto* const all = new Allocations;  // never destroyed: programs may free while the process ends
  return *all;
}

}  // namespace

NCCLRUN_EXPORT ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  return call("ncclMemAlloc", [&] {
    if (const auto bad = checkPointer("ncclMemAlloc", "ptr", ptr); bad != ncclSuccess) return bad;
    *ptr = nullptr;
    if (size == 0) return ncclSuccess;
    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return fail(ncclSystemError, "ncclMemAlloc: the system gives no %zu bytes: %s", size, strerror(errno));
    const std::lock_guard lock(allocations().mutex);
    allocations().bytes.emplace(memory, size);
    *ptr = memory;
    return ncclSuccess;
  });
}
NCCLRUN_TWIN(ncclMemAlloc);

NCCLRUN_EXPORT ncclResult_t ncclMemFree(void* ptr) {
  return call("ncclMemFree", [&] {
    if (ptr == nullptr) return ncclSuccess;
    const std::lock_guard lock(allocations().mutex);
    const auto found = allocations().bytes.find(ptr);
    if (found == allocations().bytes.end())
      return fail(ncclInvalidArgument, "ncclMemFree: %p did not come from ncclMemAlloc, or was freed before", ptr);
    munmap(ptr, found->second);
    allocations().bytes.erase(found);
    return ncclSuccess;
  });
}
NCCLRUN_TWIN(ncclMemFree);
