// GPUs, contexts and memory. A GPU's memory is a memfd, which other processes map by way of /proc.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver.h"
#include "residency.h"

using namespace ncclrun::cuda;
using stand_in::kInvalidValue;

namespace {

constexpr int kMaxGpus = 16;
constexpr size_t kMemory = size_t(8) << 30;

int gpus() {
  const char* const said = std::getenv("NCCLRUN_STAND_IN_GPUS");
  return said == nullptr ? 4 : std::min(std::atoi(said), kMaxGpus);
}

// Compute capability, ten times the major number plus the minor one.
int capability() {
  const char* const said = std::getenv("NCCLRUN_STAND_IN_CAPABILITY");
  return said == nullptr ? 90 : std::atoi(said);
}

bool hasDmaBufs() {
  const char* const said = std::getenv("NCCLRUN_STAND_IN_DMA_BUF");
  return said == nullptr || std::strcmp(said, "0") != 0;
}

CUctx_st contexts[kMaxGpus];
thread_local std::vector<Context> current;

using Word = std::atomic<uint32_t>;

struct Allocation {
  size_t bytes;
  int descriptor;  // -1: opened here, another process's
  unsigned long long id;
  Word* openers;  // how many processes have it open beside its own; in a page behind it
  int device;
};

struct Allocations {
  std::mutex mutex;
  std::map<Pointer, Allocation> all;
  unsigned long long lastId = 0;
  size_t bytes = 0;
  std::vector<Allocation> freed;  // by their process, which may be open in others
};
Allocations& allocations() {
  static auto& all = *new Allocations;
  return all;
}

// Begins with what finds it; of another process.
struct Handle {
  pid_t process;
  int descriptor;
  size_t bytes;
};
static_assert(sizeof(Handle) <= sizeof(IpcHandle));

constexpr size_t kPage = 4096;
size_t wholePages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Pointer mapped(int descriptor, size_t bytes, size_t at = 0) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, off_t(at));
  return memory == MAP_FAILED ? 0 : reinterpret_cast<Pointer>(memory);
}

void* address(Pointer pointer) { return reinterpret_cast<void*>(pointer); }

Word* openersOf(int descriptor, size_t bytes) {
  return static_cast<Word*>(address(mapped(descriptor, kPage, wholePages(bytes))));
}

// Zeros need no pages until somebody touches them, and a communicator's memory is mostly never touched.
void fill(Pointer pointer, unsigned char value, size_t bytes) {
  const Pointer end = pointer + bytes;
  const Pointer first = (pointer + kPage - 1) / kPage * kPage, last = end / kPage * kPage;
  if (value == 0 && first < last && madvise(address(first), last - first, MADV_REMOVE) == 0) {
    std::memset(address(pointer), 0, first - pointer);
    std::memset(address(last), 0, end - last);
  } else {
    std::memset(address(pointer), value, bytes);
  }
}

}  // namespace

STAND_IN_EXPORT Result cuInit(unsigned) {
  for (int i = 0; i < kMaxGpus; i++) contexts[i].device = i;
  return kSuccess;
}
STAND_IN_EXPORT Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
STAND_IN_EXPORT Result cuGetErrorName(Result result, const char** name) {
  *name = result == kNoBinaryForGpu ? "CUDA_ERROR_NO_BINARY_FOR_GPU" : "CUDA_ERROR_OF_THE_STAND_IN";
  return kSuccess;
}
STAND_IN_EXPORT Result cuGetErrorString(Result, const char** text) {
  *text = "the stand-in for NVIDIA's driver";
  return kSuccess;
}
STAND_IN_EXPORT Result cuDeviceGetCount(int* count) {
  *count = gpus();
  return kSuccess;
}
STAND_IN_EXPORT Result cuDeviceGet(Device* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < gpus() ? kSuccess : 101;
}
STAND_IN_EXPORT Result cuDeviceGetAttribute(int* value, int attribute, Device) {
  *value = attribute == kAttributeSms         ? int(stand_in::kSms)
           : attribute == kAttributeMajor     ? capability() / 10
           : attribute == kAttributeMinor     ? capability() % 10
           : attribute == kAttributeGpuDirect ? 1
           : attribute == kAttributeDmaBuf    ? int(hasDmaBufs())
                                              : 0;
  return kSuccess;
}
STAND_IN_EXPORT Result cuDeviceGetPCIBusId(char* text, int bytes, Device device) {
  std::snprintf(text, size_t(bytes), "0000:%02X:00.0", 0x10 + device);
  return kSuccess;
}
STAND_IN_EXPORT Result cuDeviceCanAccessPeer(int* can, Device, Device) {
  *can = 1;
  return kSuccess;
}
STAND_IN_EXPORT Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  *context = &contexts[device];
  return kSuccess;
}
int stand_in::currentDevice() { return current.back()->device; }

STAND_IN_EXPORT Result cuCtxGetCurrent(Context* context) {
  *context = current.empty() ? nullptr : current.back();
  return kSuccess;
}
STAND_IN_EXPORT Result cuCtxSetCurrent(Context context) {
  if (!current.empty()) current.pop_back();
  if (context != nullptr) current.push_back(context);
  return kSuccess;
}
STAND_IN_EXPORT Result cuCtxPushCurrent_v2(Context context) {
  current.push_back(context);
  return kSuccess;
}
STAND_IN_EXPORT Result cuCtxPopCurrent_v2(Context* context) {
  *context = current.back();
  current.pop_back();
  return kSuccess;
}
STAND_IN_EXPORT Result cuCtxGetDevice(Device* device) {
  if (current.empty()) return 201;
  *device = current.back()->device;
  return kSuccess;
}
STAND_IN_EXPORT Result cuCtxEnablePeerAccess(Context, unsigned) { return kSuccess; }

STAND_IN_EXPORT Result cuMemAlloc_v2(Pointer* pointer, size_t bytes) {
  const int descriptor = memfd_create("ncclrun-stand-in", MFD_CLOEXEC);
  if (bytes == 0 || descriptor < 0 || ftruncate(descriptor, off_t(wholePages(bytes) + kPage)) != 0) return 2;
  *pointer = mapped(descriptor, bytes);
  std::lock_guard lock(allocations().mutex);
  allocations().all[*pointer] = {bytes, descriptor, ++allocations().lastId, openersOf(descriptor, bytes),
                                 current.empty() ? 0 : current.back()->device};
  allocations().bytes += bytes;
  return *pointer == 0 ? 2 : kSuccess;
}
// NCCLRUN_STAND_IN_FREE_MS is how long it takes to free memory where the engine frees what a communicator had, on a
// thread of its own.
void delayFree() {
  const char* const said = std::getenv("NCCLRUN_STAND_IN_FREE_MS");
  char name[16] = "";
  if (said == nullptr || pthread_getname_np(pthread_self(), name, sizeof name) != 0) return;
  if (std::strcmp(name, "ncclrun-free") == 0) usleep(unsigned(std::atoi(said)) * 1000);
}

STAND_IN_EXPORT Result cuMemFree_v2(Pointer pointer) {
  delayFree();
  stand_in::awaitIdleGpu();
  std::lock_guard lock(allocations().mutex);
  const auto found = allocations().all.find(pointer);
  if (found == allocations().all.end()) return kInvalidValue;
  munmap(address(pointer), found->second.bytes);
  close(found->second.descriptor);
  allocations().bytes -= found->second.bytes;
  allocations().freed.push_back(found->second);
  allocations().all.erase(found);
  return kSuccess;
}
// Of one process only: what it has allocated, and what it has freed and others have not closed.
STAND_IN_EXPORT Result cuMemGetInfo_v2(size_t* unused, size_t* total) {
  std::lock_guard lock(allocations().mutex);
  auto& freed = allocations().freed;
  const auto isClosed = [](const Allocation& one) {
    return one.openers->load() == 0 && munmap(one.openers, kPage) == 0;
  };
  freed.erase(std::remove_if(freed.begin(), freed.end(), isClosed), freed.end());
  *total = kMemory;
  *unused = kMemory - allocations().bytes;
  for (const Allocation& one : freed) *unused -= one.bytes;
  return kSuccess;
}
STAND_IN_EXPORT Result cuMemGetAddressRange_v2(Pointer* base, size_t* bytes, Pointer pointer) {
  std::lock_guard lock(allocations().mutex);
  auto found = allocations().all.upper_bound(pointer);
  if (found == allocations().all.begin()) return stand_in::kNotFound;
  --found;
  if (pointer >= found->first + found->second.bytes) return stand_in::kNotFound;
  *base = found->first;
  *bytes = found->second.bytes;
  return kSuccess;
}
// A descriptor of the whole memory, as a dma-buf is one.
STAND_IN_EXPORT Result cuMemGetHandleForAddressRange(void* handle, Pointer pointer, size_t bytes, int type,
                                                     unsigned long long) {
  std::lock_guard lock(allocations().mutex);
  const auto found = allocations().all.find(pointer);
  if (type != kHandleDmaBuf || bytes % kPage != 0 || !hasDmaBufs()) return kInvalidValue;
  if (found == allocations().all.end() || bytes > found->second.bytes) return kInvalidValue;
  *static_cast<int*>(handle) = fcntl(found->second.descriptor, F_DUPFD_CLOEXEC, 0);
  return kSuccess;
}
STAND_IN_EXPORT Result cuPointerGetAttribute(void* value, int attribute, Pointer pointer) {
  Pointer base = 0;
  size_t bytes = 0;
  if (cuMemGetAddressRange_v2(&base, &bytes, pointer) != kSuccess) return kInvalidValue;
  std::lock_guard lock(allocations().mutex);
  const Allocation& found = allocations().all[base];
  if (attribute == kPointerBufferId) *static_cast<unsigned long long*>(value) = found.id;
  if (attribute == kPointerMemoryType) *static_cast<unsigned*>(value) = kMemoryDevice;
  if (attribute == kPointerIsManaged) *static_cast<unsigned*>(value) = 0;
  if (attribute == kPointerDeviceOrdinal) *static_cast<int*>(value) = found.device;
  if (attribute == kPointerIsLegacyIpcCapable) *static_cast<int*>(value) = found.descriptor >= 0;
  return kSuccess;
}

STAND_IN_EXPORT Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *memory == nullptr ? 2 : kSuccess;
}
STAND_IN_EXPORT Result cuMemFreeHost(void* memory) {
  stand_in::awaitIdleGpu();
  std::free(memory);
  return kSuccess;
}
STAND_IN_EXPORT Result cuMemHostRegister_v2(void*, size_t, unsigned) { return kSuccess; }
STAND_IN_EXPORT Result cuMemHostUnregister(void*) { return kSuccess; }
STAND_IN_EXPORT Result cuMemHostGetDevicePointer_v2(Pointer* pointer, void* memory, unsigned) {
  *pointer = reinterpret_cast<Pointer>(memory);
  return kSuccess;
}
STAND_IN_EXPORT Result cuMemsetD8Async(Pointer pointer, unsigned char value, size_t bytes, Stream stream) {
  return stand_in::enqueue(stream, [=] { fill(pointer, value, bytes); });
}
STAND_IN_EXPORT Result cuMemcpyAsync(Pointer to, Pointer from, size_t bytes, Stream stream) {
  // Of ordinary memory of the host, NVIDIA's driver takes what is there now.
  Pointer base = 0;
  size_t all = 0;
  if (bytes <= 65536 && cuMemGetAddressRange_v2(&base, &all, from) != kSuccess) {
    const std::string now(static_cast<const char*>(address(from)), bytes);
    return stand_in::enqueue(stream, [=] { std::memcpy(address(to), now.data(), bytes); });
  }
  return stand_in::enqueue(stream, [=] { std::memmove(address(to), address(from), bytes); });
}

STAND_IN_EXPORT Result cuMemcpy2DAsync_v2(const RowsCopy* rows, Stream stream) {
  if (rows->width > rows->from.pitch || rows->width > rows->to.pitch) return kInvalidValue;
  return stand_in::enqueue(stream, [copy = *rows] {
    for (size_t row = 0; row < copy.rows; row++)
      std::memmove(address(copy.to.pointer + row * copy.to.pitch), address(copy.from.pointer + row * copy.from.pitch),
                   copy.width);
  });
}

STAND_IN_EXPORT Result cuIpcGetMemHandle(IpcHandle* handle, Pointer pointer) {
  std::lock_guard lock(allocations().mutex);
  const auto found = allocations().all.find(pointer);
  if (found == allocations().all.end() || found->second.descriptor < 0) return kInvalidValue;
  const Handle written{getpid(), found->second.descriptor, found->second.bytes};
  std::memcpy(handle, &written, sizeof written);
  return kSuccess;
}
STAND_IN_EXPORT Result cuIpcOpenMemHandle_v2(Pointer* pointer, IpcHandle handle, unsigned) {
  Handle read{};
  std::memcpy(&read, &handle, sizeof read);
  const std::string path = "/proc/" + std::to_string(read.process) + "/fd/" + std::to_string(read.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return kInvalidValue;
  *pointer = mapped(descriptor, read.bytes);
  Word* const openers = openersOf(descriptor, read.bytes);
  openers->fetch_add(1);
  close(descriptor);
  std::lock_guard lock(allocations().mutex);
  allocations().all[*pointer] = {read.bytes, -1, ++allocations().lastId, openers,
                                 current.empty() ? 0 : current.back()->device};
  return *pointer == 0 ? kInvalidValue : kSuccess;
}
STAND_IN_EXPORT Result cuIpcCloseMemHandle(Pointer pointer) {
  std::lock_guard lock(allocations().mutex);
  const auto found = allocations().all.find(pointer);
  if (found == allocations().all.end()) return kInvalidValue;
  munmap(address(pointer), found->second.bytes);
  found->second.openers->fetch_sub(1);
  munmap(found->second.openers, kPage);
  allocations().all.erase(found);
  return kSuccess;
}

STAND_IN_EXPORT Result cuStreamBatchMemOp_v2(Stream stream, unsigned count, const MemoryOperation* operations,
                                             unsigned) {
  const std::vector<MemoryOperation> all(operations, operations + count);
  return stand_in::enqueue(stream, [all] {
    for (const MemoryOperation& one : all) {
      auto* const word = reinterpret_cast<Word*>(one.address);
      if (one.operation == kMemoryWrite32) {
        word->store(uint32_t(one.value));
        continue;
      }
      stand_in::awaitUntil([&] { return int32_t(word->load() - uint32_t(one.value)) >= 0; });
    }
  });
}
