#include <array>
#include <string>

#include "binding/module.h"
#include "dl/cuda.h"
#include "dl/nvml.h"
#include "dl/verbs.h"

namespace ncclrun::binding {
namespace {

// Whether one of a GPU's links is up and may be used between peers, and what is at its other end.
Napi::Object linkOf(Napi::Env env, const nvml::Library& library, nvml::Device device, unsigned link) {
  unsigned peers = 0;
  int state = 0;
  nvml::PciInfo remote = {};
  const bool active =
      library.deviceGetNvLinkCapability(device, link, nvml::kCapabilityPeers, &peers) == nvml::kSuccess && peers != 0 &&
      library.deviceGetNvLinkState(device, link, &state) == nvml::kSuccess && state == nvml::kFeatureEnabled;
  const bool known = active && library.deviceGetNvLinkRemotePciInfo(device, link, &remote) == nvml::kSuccess;
  remote.shortBusId[sizeof remote.shortBusId - 1] = '\0';
  auto made = Napi::Object::New(env);
  made.Set("active", Napi::Boolean::New(env, active));
  made.Set("remote", known ? Napi::String::New(env, remote.shortBusId) : env.Null());
  return made;
}

// Drivers without C2C do not know the fields.
Napi::Value c2cOf(Napi::Env env, const nvml::Library& library, nvml::Device device) {
  nvml::FieldValue links = {};
  links.field = nvml::kC2cLinkCount;
  if (library.deviceGetFieldValues(device, 1, &links) != nvml::kSuccess || links.result != nvml::kSuccess)
    return env.Null();
  unsigned count = 0;
  unsigned bandwidth = 0;
  for (unsigned link = 0; link < links.value.whole; ++link) {
    std::array<nvml::FieldValue, 2> values = {};
    values[0].field = nvml::kC2cLinkState;
    values[1].field = nvml::kC2cLinkBandwidth;
    values[0].scope = values[1].scope = link;
    if (library.deviceGetFieldValues(device, 2, values.data()) != nvml::kSuccess) continue;
    if (values[0].result != nvml::kSuccess || values[0].value.whole != 1 || values[1].result != nvml::kSuccess)
      continue;
    bandwidth = values[1].value.whole;
    ++count;
  }
  if (count == 0) return env.Null();
  auto made = Napi::Object::New(env);
  made.Set("count", Napi::Number::New(env, count));
  made.Set("bandwidth", Napi::Number::New(env, bandwidth));
  return made;
}

// Empty: NVML does not let us see it.
Napi::Value gpuOf(Napi::Env env, const nvml::Library& library, unsigned number) {
  nvml::Device device = nullptr;
  nvml::PciInfo place = {};
  unsigned index = 0;
  int major = 0;
  int minor = 0;
  if (library.deviceGetHandleByIndex(number, &device) != nvml::kSuccess ||
      library.deviceGetPciInfo(device, &place) != nvml::kSuccess ||
      library.deviceGetIndex(device, &index) != nvml::kSuccess ||
      library.deviceGetCudaComputeCapability(device, &major, &minor) != nvml::kSuccess)
    return {};
  place.busId[sizeof place.busId - 1] = '\0';
  auto links = Napi::Array::New(env);
  for (unsigned link = 0; link < nvml::kMaxLinks; ++link) links.Set(link, linkOf(env, library, device, link));
  auto made = Napi::Object::New(env);
  made.Set("busId", Napi::String::New(env, place.busId));
  made.Set("index", Napi::Number::New(env, index));
  made.Set("computeCapability", Napi::Number::New(env, major * 10 + minor));
  made.Set("links", links);
  made.Set("c2c", c2cOf(env, library, device));
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
  return made;
}

}  // namespace

Napi::Value nvmlGpus(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  nvml::Library library;
  std::string why;
  if (!nvml::open(library, why)) return Napi::String::New(env, why);
  auto gpus = Napi::Array::New(env);
  unsigned count = 0;
  if (library.deviceGetCount(&count) != nvml::kSuccess) count = 0;
  for (unsigned number = 0; number < count; ++number) {
    const Napi::Value gpu = gpuOf(env, library, number);
    if (!gpu.IsEmpty()) gpus.Set(gpus.Length(), gpu);
  }
  library.shutdown();
  return gpus;
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
    const verbs::Context context = library.openDevice(devices[number]);
    if (context == nullptr) continue;
    verbs::DeviceAttributes device = {};
    if (library.queryDevice(context, &device) != 0) device.ports = 0;
    for (uint8_t port = 1; port != 0 && port <= device.ports; ++port) {
      verbs::PortAttributes attributes = {};
      if (library.queryPort(context, port, &attributes) != 0) continue;
      ports.Set(ports.Length(), portOf(env, library.getDeviceName(devices[number]), port, device, attributes));
    }
    library.closeDevice(context);
  }
  if (devices != nullptr) library.freeDeviceList(devices);
  return ports;
}

}  // namespace ncclrun::binding
