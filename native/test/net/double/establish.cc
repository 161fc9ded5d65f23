// init, devices, listen, connect, accept, close and registration of the double.
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "net/double/behaviour.h"
#include "net/double/calls.h"
#include "net/double/state.h"

namespace ncclrun::test::doubled {

abi::Log logOf;
abi::Profiler profilerOf;

namespace {

constexpr uint64_t kBegun = 0x6e63636c72756e21;
constexpr size_t kTailOffset = 96;  // the example does not use the end of a handle

// The state of a handshake, in the handle.
struct Tail {
  uint64_t begun;
  void* self;
  std::thread::id thread;
  int32_t nulls;
};
static_assert(kTailOffset + sizeof(Tail) <= NET_HANDLE_BYTES);

struct Listener {
  void* core;
  long nulls;
};

abi::DeviceHandle foreignDriver{1, 7, nullptr, 0, 0};

void block(long ms) {
  if (ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

void checkDriver(abi::DeviceHandle** driver) {
  if (driver == nullptr) return;
  if (planted("net-device") == 2) *driver = &foreignDriver;
}

Comm* wrap(void* core, bool sends) {
  auto* const comm = new Comm;
  comm->core = core;
  comm->sends = sends;
  comm->nulls = planted("null-request");
  count("comms");
  return comm;
}

std::string pciPath(long bus) {
  char address[16];
  std::snprintf(address, sizeof address, "0000:%02lx:03.0", bus);
  return std::string("/sys/devices/pci0000:00/") + address;
}

int close(void* opaque) {
  auto* const comm = static_cast<Comm*>(opaque);
  if (comm == nullptr) broken("close of a null comm");
  count("comms", -1);
  count("open-at-close", long(comm->open.size()));
  if (planted("strict-close") != 0 && !comm->isDead && !comm->open.empty())
    broken(comm->sends ? "closeSend with open requests" : "closeRecv with open requests");
  count("regions-at-close", long(comm->regions.size()));
  for (void* const region : comm->regions) delete static_cast<Region*>(region);
  const int result = exampleTable.closeSend(comm->core);
  delete comm;
  return result;
}

}  // namespace

int begin(void** context, uint64_t communicatorId, abi::Log log, abi::Profiler profiler) {
  count("init");
  logOf = log;
  profilerOf = profiler;
  if (planted("garbage-log") != 0) {
    const auto* const nowhere = reinterpret_cast<const char*>(uintptr_t(16));
    log(abi::kLogWarn, 0x10, __FILE__, __LINE__, "path %s of %d\n", nowhere, 5);
    log(abi::kLogInfo, ~0ul, __FILE__, __LINE__, "path %s", nowhere);
    log(77, 0, nullptr, 0, nullptr);
  }
  if (const long code = planted("init-error"); code != 0) {
    log(abi::kLogWarn, 0x10, __FILE__, __LINE__, "no cable in port %d", 3);
    return int(code);
  }
  netConfig config{-1};
  return exampleTable.init(context, communicatorId, &config, log, nullptr);
}

int finalize(void* context) {
  count("finalize");
  const bool isLast = netDoubleCount("finalize") == netDoubleCount("init");
  if (isLast && netDoubleCount("comms") != 0) broken("finalize with open comms");
  return exampleTable.finalize(context);
}

int devices(int* number) {
  count("devices");
  if (planted("no-devices") == 0) return exampleTable.devices(number);
  logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "no port is up");
  *number = 0;
  return 0;
}

int properties(int device, netProperties* out) {
  count("getProperties");
  const int result = exampleTable.getProperties(device, out);
  out->maxRecvs = int(planted("receives", 8));
  out->maxP2pBytes = size_t(planted("max-bytes", long(out->maxP2pBytes)));
  if (planted("device-memory") != 0) out->ptrSupport |= NET_DEVICE_MEMORY;
  if (planted("dma-buf") != 0) out->ptrSupport |= NET_DMABUF;
  if (const long bus = planted("card"); bus != 0) {
    static const std::string& path = *new std::string(pciPath(bus));
    out->pciPath = const_cast<char*>(path.c_str());
  }
  out->forceFlush = planted("force-flush") != 0 ? 1 : 0;
  out->netDeviceType = planted("net-device") == 1 ? 1 : 0;
  if (planted("bad-properties") == 0) return result;
  out->name = nullptr;
  out->pciPath = nullptr;
  out->speed = 0;
  out->port = -1;
  out->latency = std::nanf("");
  out->maxComms = -5;
  out->maxRecvs = 100;
  out->maxP2pBytes = 0;
  return result;
}

int listen(void* context, int device, void* handle, void** listener) {
  void* core = nullptr;
  const int result = exampleTable.listen(context, device, handle, &core);
  if (result == 0) *listener = new Listener{core, planted("null-comm")};
  return result;
}

int closeListen(void* opaque) {
  auto* const listener = static_cast<Listener*>(opaque);
  const int result = exampleTable.closeListen(listener->core);
  delete listener;
  return result;
}

int connect(void* context, int device, void* handle, void** sender, abi::DeviceHandle** driver) {
  auto* const tail = reinterpret_cast<Tail*>(static_cast<char*>(handle) + kTailOffset);
  if (*sender != nullptr) broken("connect with a comm that is not null");
  if (tail->begun != kBegun) {
    *tail = {kBegun, handle, std::this_thread::get_id(), int32_t(planted("null-comm"))};
    if (driver != nullptr && *driver != nullptr) broken("connect with a device handle that is not null");
  }
  if (tail->self != handle) broken("the handle moved while connect was under way");
  if (tail->thread != std::this_thread::get_id()) broken("connect went on in another thread");
  count("connect");
  block(planted("block-ms"));
  if (tail->nulls-- > 0) return 0;
  tail->nulls = 0;
  void* core = nullptr;
  const int result = exampleTable.connect(context, device, handle, &core, nullptr);
  if (core != nullptr) *sender = wrap(core, true);
  if (core != nullptr) checkDriver(driver);
  return result;
}

int accept(void* opaque, void** receiver, abi::DeviceHandle** driver) {
  auto* const listener = static_cast<Listener*>(opaque);
  count("accept");
  block(planted("block-ms") + planted("accept-ms"));
  static std::atomic<long> accepts{0};
  if (++accepts == planted("block-at")) block(60'000);
  if (listener->nulls-- > 0) return 0;
  listener->nulls = 0;
  void* core = nullptr;
  const int result = exampleTable.accept(listener->core, &core, nullptr);
  if (core != nullptr) *receiver = wrap(core, false);
  if (core != nullptr) checkDriver(driver);
  return result;
}

int closeSend(void* comm) { return close(comm); }
int closeRecv(void* comm) { return close(comm); }

int regMr(void* opaque, void* data, size_t bytes, int type, void** registration) {
  auto& comm = *static_cast<Comm*>(opaque);
  const bool isDevice = type == NET_DEVICE_MEMORY;
  if (data == nullptr || bytes == 0) broken("registration of nothing");
  if (isDevice && (planted("device-memory") == 0 && planted("dma-buf") == 0))
    broken("GPU memory is registered where the properties have none");
  if (isDevice && planted("no-device-memory") != 0) {
    logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "nvidia_peermem is not loaded");
    return NET_INVALID_USAGE;
  }
  if (long(comm.regions.size()) >= planted("regions", 1 << 20)) {
    logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "no more regions");
    return NET_SYSTEM_ERROR;
  }
  count("regMr");
  if (planted("null-registration") != 0) return 0;
  *registration = new Region{isDevice};
  comm.regions.insert(*registration);
  return 0;
}

int regMrDmaBuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int descriptor, void** registration) {
  if (planted("dma-buf") == 0 || descriptor < 0) broken("registration of a dma-buf where the properties have none");
  if (planted("no-dma-buf") != 0) {
    logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "no dma-buf");
    return NET_SYSTEM_ERROR;
  }
  // A descriptor of something else than the memory would go unnoticed, since the data go by the address.
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) broken("registration of a dma-buf that is closed");
  if (facts.st_size > 0 && offset + bytes > uint64_t(facts.st_size)) broken("registration beyond a dma-buf");
  count("regMrDmaBuf");
  return regMr(comm, data, bytes, type, registration);
}

int deregMr(void* opaque, void* registration) {
  auto& comm = *static_cast<Comm*>(opaque);
  if (planted("null-registration") != 0 && registration == nullptr) return 0;
  if (comm.regions.erase(registration) != 1) broken("deregistration of what is not registered");
  delete static_cast<Region*>(registration);
  return 0;
}

}  // namespace ncclrun::test::doubled
