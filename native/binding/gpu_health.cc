#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "binding/module.h"
#include "binding/settler.h"
#include "dl/nvml.h"

namespace ncclrun::binding {
namespace {

struct GpuHealth {
  std::string busId;
  std::optional<double> clock, maxClock, throttleReasons, corrected, uncorrected, pcieWidth, maxPcieWidth;
};
struct Found {
  std::string why;  // nothing can be said
  std::vector<GpuHealth> all;
};

// Stays open: it is asked again and again, and its start takes long.
struct Opened {
  std::mutex mutex;
  nvml::Library library;
  bool isOpen = false;
};

// Null where this driver has no such function, or does not say.
template <class Value, class Function, class... Arguments>
std::optional<double> ask(Function* function, nvml::Device device, Arguments... arguments) {
  Value value = 0;
  if (function == nullptr || function(device, arguments..., &value) != nvml::kSuccess) return std::nullopt;
  return static_cast<double>(value);
}

// False: NVML does not say which GPU it is.
bool readGpu(const nvml::Library& library, unsigned number, GpuHealth& gpu) {
  nvml::Device device = nullptr;
  nvml::PciInfo pci = {};
  if (library.deviceGetHandleByIndex(number, &device) != nvml::kSuccess ||
      library.deviceGetPciInfo(device, &pci) != nvml::kSuccess)
    return false;
  pci.busId[sizeof pci.busId - 1] = '\0';
  gpu.busId = pci.busId;
  gpu.clock = ask<unsigned>(library.deviceGetClockInfo, device, nvml::kClockSm);
  gpu.maxClock = ask<unsigned>(library.deviceGetMaxClockInfo, device, nvml::kClockSm);
  gpu.throttleReasons = ask<unsigned long long>(library.deviceGetThrottleReasons, device);
  gpu.corrected =
      ask<unsigned long long>(library.deviceGetTotalEccErrors, device, nvml::kEccCorrected, nvml::kEccVolatile);
  gpu.uncorrected =
      ask<unsigned long long>(library.deviceGetTotalEccErrors, device, nvml::kEccUncorrected, nvml::kEccVolatile);
  gpu.pcieWidth = ask<unsigned>(library.deviceGetPcieWidth, device);
  gpu.maxPcieWidth = ask<unsigned>(library.deviceGetMaxPcieWidth, device);
  return true;
}

Found readAll() {
  static Opened* const opened = new Opened;  // threads of the addon may outlive static objects
  Found found;
  std::lock_guard lock(opened->mutex);
  if (!opened->isOpen) opened->isOpen = nvml::open(opened->library, found.why);
  if (!opened->isOpen) return found;
  unsigned count = 0;
  if (opened->library.deviceGetCount(&count) != nvml::kSuccess) count = 0;
  for (unsigned number = 0; number < count; ++number) {
    if (GpuHealth gpu; readGpu(opened->library, number, gpu)) found.all.push_back(std::move(gpu));
  }
  return found;
}

Napi::Value valueOf(Napi::Env env, const GpuHealth& gpu) {
  auto made = Napi::Object::New(env);
  const auto set = [&](const char* name, const std::optional<double>& value) {
    made.Set(name, value ? Napi::Number::New(env, *value) : env.Null());
  };
  made.Set("busId", Napi::String::New(env, gpu.busId));
  set("clock", gpu.clock);
  set("maxClock", gpu.maxClock);
  set("throttleReasons", gpu.throttleReasons);
  set("corrected", gpu.corrected);
  set("uncorrected", gpu.uncorrected);
  set("pcieWidth", gpu.pcieWidth);
  set("maxPcieWidth", gpu.maxPcieWidth);
  return made;
}

}  // namespace

// As with nvmlGpus, the driver may take its time.
Napi::Value gpuHealth(const Napi::CallbackInfo& call) {
  auto pending = std::make_shared<Pending>(call.Env());
  auto found = std::make_shared<Found>();
  pending->value = [found](Napi::Env env) -> Napi::Value {
    if (!found->why.empty()) return Napi::String::New(env, found->why);
    auto all = Napi::Array::New(env);
    for (const GpuHealth& gpu : found->all) all.Set(all.Length(), valueOf(env, gpu));
    return all;
  };
  const Napi::Promise promise = pending->deferred.Promise();
  Settler::of(call.Env())->block(pending, [found] {
    *found = readAll();
    return ncclSuccess;
  });
  return promise;
}

}  // namespace ncclrun::binding
