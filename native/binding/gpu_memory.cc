#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "binding/module.h"
#include "binding/settler.h"
#include "dl/nvml.h"

namespace ncclrun::binding {
namespace {

struct GpuMemory {
  std::string busId;
  nvml::Memory memory = {};
  std::vector<nvml::Process> processes;
};
struct Found {
  std::string why;  // nothing can be said
  std::vector<GpuMemory> all;
};

// More are not reported.
constexpr unsigned kMaxProcesses = 64;

// False: NVML does not say, or not of this GPU.
bool readGpu(const nvml::Library& library, unsigned number, GpuMemory& gpu) {
  nvml::Device device = nullptr;
  nvml::PciInfo pci = {};
  if (library.deviceGetHandleByIndex(number, &device) != nvml::kSuccess ||
      library.deviceGetPciInfo(device, &pci) != nvml::kSuccess || library.deviceGetMemoryInfo == nullptr ||
      library.deviceGetMemoryInfo(device, &gpu.memory) != nvml::kSuccess)
    return false;
  pci.busId[sizeof pci.busId - 1] = '\0';
  gpu.busId = pci.busId;
  unsigned count = kMaxProcesses;
  gpu.processes.resize(count);
  const bool known = library.deviceGetProcesses != nullptr &&
                     library.deviceGetProcesses(device, &count, gpu.processes.data()) == nvml::kSuccess;
  gpu.processes.resize(known ? std::min(count, kMaxProcesses) : 0);
  return true;
}

Found readAll() {
  Found found;
  nvml::Library library;
  if (!nvml::open(library, found.why)) return found;
  unsigned count = 0;
  if (library.deviceGetCount(&count) != nvml::kSuccess) count = 0;
  for (unsigned number = 0; number < count; ++number) {
    if (GpuMemory gpu; readGpu(library, number, gpu)) found.all.push_back(std::move(gpu));
  }
  library.shutdown();
  return found;
}

Napi::Value valueOf(Napi::Env env, const GpuMemory& gpu) {
  auto processes = Napi::Array::New(env);
  for (const nvml::Process& process : gpu.processes) {
    const bool known = process.usedMemory != nvml::kUnknownMemory;
    auto made = Napi::Object::New(env);
    made.Set("pid", Napi::Number::New(env, process.pid));
    made.Set("used", known ? Napi::Number::New(env, static_cast<double>(process.usedMemory)) : env.Null());
    processes.Set(processes.Length(), made);
  }
  auto made = Napi::Object::New(env);
  made.Set("busId", Napi::String::New(env, gpu.busId));
  made.Set("total", Napi::Number::New(env, static_cast<double>(gpu.memory.total)));
  made.Set("free", Napi::Number::New(env, static_cast<double>(gpu.memory.free)));
  made.Set("processes", processes);
  return made;
}

}  // namespace

// As with nvmlGpus, the driver may take its time.
Napi::Value gpuMemory(const Napi::CallbackInfo& call) {
  auto pending = std::make_shared<Pending>(call.Env());
  auto found = std::make_shared<Found>();
  pending->value = [found](Napi::Env env) -> Napi::Value {
    if (!found->why.empty()) return Napi::String::New(env, found->why);
    auto all = Napi::Array::New(env);
    for (const GpuMemory& gpu : found->all) all.Set(all.Length(), valueOf(env, gpu));
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
