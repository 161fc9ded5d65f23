#include <arpa/inet.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "binding/module.h"
#include "binding/settler.h"
#include "dl/cuda.h"
#include "dl/nvml.h"
#include "dl/verbs.h"

namespace ncclrun::binding {
namespace {

struct Link {
  bool active = false;  // up, and may be used between peers
  std::string remote;   // PCI address at its other end; empty: NVML does not say
};
struct Gpu {
  std::string busId;
  unsigned index = 0;
  int computeCapability = 0;
  std::array<Link, nvml::kMaxLinks> links;
  unsigned c2cCount = 0;
  unsigned c2cBandwidth = 0;
};
struct Gpus {
  std::string why;  // there are none to be seen
  std::vector<Gpu> all;
};

Link linkOf(const nvml::Library& library, nvml::Device device, unsigned link) {
  unsigned peers = 0;
  int state = 0;
  nvml::PciInfo remote = {};
  const bool active =
      library.deviceGetNvLinkCapability(device, link, nvml::kCapabilityPeers, &peers) == nvml::kSuccess && peers != 0 &&
      library.deviceGetNvLinkState(device, link, &state) == nvml::kSuccess && state == nvml::kFeatureEnabled;
  const bool known = active && library.deviceGetNvLinkRemotePciInfo(device, link, &remote) == nvml::kSuccess;
  remote.shortBusId[sizeof remote.shortBusId - 1] = '\0';
  return {active, known ? remote.shortBusId : ""};
}

// Drivers without C2C do not know the fields.
void readC2c(const nvml::Library& library, nvml::Device device, Gpu& gpu) {
  nvml::FieldValue links = {};
  links.field = nvml::kC2cLinkCount;
  if (library.deviceGetFieldValues(device, 1, &links) != nvml::kSuccess || links.result != nvml::kSuccess) return;
  for (unsigned link = 0; link < links.value.whole; ++link) {
    std::array<nvml::FieldValue, 2> values = {};
    values[0].field = nvml::kC2cLinkState;
    values[1].field = nvml::kC2cLinkBandwidth;
    values[0].scope = values[1].scope = link;
    if (library.deviceGetFieldValues(device, 2, values.data()) != nvml::kSuccess) continue;
    if (values[0].result != nvml::kSuccess || values[0].value.whole != 1 || values[1].result != nvml::kSuccess)
      continue;
    gpu.c2cBandwidth = values[1].value.whole;
    ++gpu.c2cCount;
  }
}

// False: NVML does not let us see it.
bool readGpu(const nvml::Library& library, unsigned number, Gpu& gpu) {
  nvml::Device device = nullptr;
  nvml::PciInfo pci = {};
  int major = 0;
  int minor = 0;
  if (library.deviceGetHandleByIndex(number, &device) != nvml::kSuccess ||
      library.deviceGetPciInfo(device, &pci) != nvml::kSuccess ||
      library.deviceGetIndex(device, &gpu.index) != nvml::kSuccess ||
      library.deviceGetCudaComputeCapability(device, &major, &minor) != nvml::kSuccess)
    return false;
  pci.busId[sizeof pci.busId - 1] = '\0';
  gpu.busId = pci.busId;
  gpu.computeCapability = major * 10 + minor;
  for (unsigned link = 0; link < nvml::kMaxLinks; ++link) gpu.links[link] = linkOf(library, device, link);
  readC2c(library, device, gpu);
  return true;
}

Gpus readGpus() {
  Gpus gpus;
  nvml::Library library;
  if (!nvml::open(library, gpus.why)) return gpus;
  unsigned count = 0;
  if (library.deviceGetCount(&count) != nvml::kSuccess) count = 0;
  for (unsigned number = 0; number < count; ++number) {
    if (Gpu gpu; readGpu(library, number, gpu)) gpus.all.push_back(gpu);
  }
  library.shutdown();
  return gpus;
}

Napi::Value valueOf(Napi::Env env, const Gpu& gpu) {
  auto links = Napi::Array::New(env);
  for (const Link& link : gpu.links) {
    auto made = Napi::Object::New(env);
    made.Set("active", Napi::Boolean::New(env, link.active));
    made.Set("remote", link.remote.empty() ? env.Null() : Napi::String::New(env, link.remote));
    links.Set(links.Length(), made);
  }
  auto made = Napi::Object::New(env);
  made.Set("busId", Napi::String::New(env, gpu.busId));
  made.Set("index", Napi::Number::New(env, gpu.index));
  made.Set("computeCapability", Napi::Number::New(env, gpu.computeCapability));
  made.Set("links", links);
  made.Set("c2c", env.Null());
  if (gpu.c2cCount == 0) return made;
  auto c2c = Napi::Object::New(env);
  c2c.Set("count", Napi::Number::New(env, gpu.c2cCount));
  c2c.Set("bandwidth", Napi::Number::New(env, gpu.c2cBandwidth));
  made.Set("c2c", c2c);
  return made;
}

Napi::Object portOf(Napi::Env env, const char* name, uint8_t number, const verbs::DeviceAttributes& device,
                    const verbs::PortAttributes& port) {
  char guid[19];
  snprintf(guid, sizeof guid, "0x%llx", static_cast<unsigned long long>(device.systemImageGuid));
  const bool usable = port.linkLayer == verbs::kLinkInfiniBand || port.linkLayer == verbs::kLinkEthernet;
  auto made = Napi::Object::New(env);
  made.Set("name", Napi::String::New(env, name));
  made.Set("port", Napi::Number::New(env, number));
  made.Set("active", Napi::Boolean::New(env, usable && port.state == verbs::kPortActive));
  made.Set("ethernet", Napi::Boolean::New(env, port.linkLayer == verbs::kLinkEthernet));
  made.Set("guid", Napi::String::New(env, guid));
  made.Set("activeWidth", Napi::Number::New(env, port.activeWidth));
  made.Set("activeSpeed", Napi::Number::New(env, port.activeSpeed));
  made.Set("maxQueuePairs", Napi::Number::New(env, device.maxQueuePairs));
  made.Set("firmware",
           Napi::String::New(env, std::string(device.firmware, strnlen(device.firmware, sizeof device.firmware))));
  made.Set("lid", Napi::Number::New(env, port.lid));
  made.Set("activeMtu", Napi::Number::New(env, port.activeMtu));
  return made;
}

// The GIDs in use, by their index in the port's table. Each index costs a file or a call of the kernel, and tables have
// up to 1,024. They fill from the start, with holes where an address was removed; queue pairs take indices of 8 bits.
Napi::Array gidsOf(Napi::Env env, const verbs::Library& library, verbs::Context* context, uint8_t port, int slots) {
  constexpr int kMaxIndex = 255, kMaxHole = 32;
  auto gids = Napi::Array::New(env);
  int empty = 0;
  for (int index = 0; index < slots && index <= kMaxIndex && empty < kMaxHole; ++index) {
    verbs::Gid gid = {};
    char text[INET6_ADDRSTRLEN] = {};
    if (library.queryGid(context, port, index, &gid) != 0 || gid == verbs::Gid{}) {
      ++empty;
      continue;
    }
    empty = 0;
    if (inet_ntop(AF_INET6, gid.data(), text, sizeof text) == nullptr) continue;
    auto one = Napi::Object::New(env);
    one.Set("index", Napi::Number::New(env, index));
    one.Set("gid", Napi::String::New(env, text));
    gids.Set(gids.Length(), one);
  }
  return gids;
}

}  // namespace

// NVIDIA's driver may take seconds to start, so the event loop does not wait for it.
Napi::Value nvmlGpus(const Napi::CallbackInfo& call) {
  auto pending = std::make_shared<Pending>(call.Env());
  auto gpus = std::make_shared<Gpus>();
  pending->value = [gpus](Napi::Env env) -> Napi::Value {
    if (!gpus->why.empty()) return Napi::String::New(env, gpus->why);
    auto all = Napi::Array::New(env);
    for (const Gpu& gpu : gpus->all) all.Set(all.Length(), valueOf(env, gpu));
    return all;
  };
  const Napi::Promise promise = pending->deferred.Promise();
  Settler::of(call.Env())->block(pending, [gpus] {
    *gpus = readGpus();
    return ncclSuccess;
  });
  return promise;
}

Napi::Value cudaGpus(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  std::string why;
  const cuda::Driver* const driver = cuda::driver(why);
  if (driver == nullptr) return Napi::String::New(env, why);
  auto gpus = Napi::Array::New(env);
  int count = 0;
  if (driver->deviceGetCount(&count) != cuda::kSuccess) count = 0;
  for (int number = 0; number < count; ++number) {
    cuda::Device device = 0;
    char busId[32] = {};
    int major = 0;
    int minor = 0;
    int direct = 0;
    if (driver->deviceGet(&device, number) != cuda::kSuccess ||
        driver->deviceGetPCIBusId(busId, sizeof busId, device) != cuda::kSuccess)
      continue;
    driver->deviceGetAttribute(&major, cuda::kAttributeMajor, device);
    driver->deviceGetAttribute(&minor, cuda::kAttributeMinor, device);
    driver->deviceGetAttribute(&direct, cuda::kAttributeGpuDirect, device);
    auto made = Napi::Object::New(env);
    made.Set("busId", Napi::String::New(env, busId));
    made.Set("computeCapability", Napi::Number::New(env, major * 10 + minor));
    made.Set("gpuDirect", Napi::Boolean::New(env, direct != 0));
    gpus.Set(gpus.Length(), made);
  }
  return gpus;
}

Napi::Value verbsPorts(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  verbs::Library library;
  std::string why;
  if (!verbs::open(library, why)) return Napi::String::New(env, why);
  auto ports = Napi::Array::New(env);
  int count = 0;
  verbs::Device* const devices = library.getDeviceList(&count);
  for (int number = 0; devices != nullptr && number < count; ++number) {
    verbs::Context* const context = library.openDevice(devices[number]);
    if (context == nullptr) continue;
    verbs::DeviceAttributes device = {};
    if (library.queryDevice(context, &device) != 0) device.ports = 0;
    for (uint8_t port = 1; port != 0 && port <= device.ports; ++port) {
      verbs::PortAttributes attributes = {};
      if (library.queryPort(context, port, &attributes) != 0) continue;
      auto made = portOf(env, library.getDeviceName(devices[number]), port, device, attributes);
      made.Set("gids", gidsOf(env, library, context, port, attributes.addresses));
      ports.Set(ports.Length(), made);
    }
    library.closeDevice(context);
  }
  if (devices != nullptr) library.freeDeviceList(devices);
  return ports;
}

}  // namespace ncclrun::binding
