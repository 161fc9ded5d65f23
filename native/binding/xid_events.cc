// NVIDIA's Xids as NVML tells them: to any user, also where the kernel's log may not be read, but without their words.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "binding/module.h"
#include "dl/nvml.h"

namespace ncclrun::binding {
namespace {

struct Event {
  std::string busId;
  unsigned code;
};

// Shared by the event loop and a thread that is not joined: a broken GPU may keep it in the driver.
struct XidEvents {
  std::atomic<bool> closed = false;
  std::mutex mutex;
  std::vector<Event> found;
};
using Shared = std::shared_ptr<XidEvents>;

constexpr unsigned kLookMs = 250;  // how soon a thread that is not wanted any more ends
constexpr size_t kMaxEvents = 1000;

// The GPUs whose events we get, with their addresses.
std::map<nvml::Device, std::string> registerAll(const nvml::Library& library, nvml::EventSet set) {
  std::map<nvml::Device, std::string> addresses;
  unsigned count = 0;
  if (library.deviceGetCount(&count) != nvml::kSuccess) count = 0;
  for (unsigned number = 0; number < count; ++number) {
    nvml::Device device = nullptr;
    nvml::PciInfo pci = {};
    if (library.deviceGetHandleByIndex(number, &device) != nvml::kSuccess ||
        library.deviceGetPciInfo(device, &pci) != nvml::kSuccess ||
        library.deviceRegisterEvents(device, nvml::kEventXid, set) != nvml::kSuccess)
      continue;
    pci.busId[sizeof pci.busId - 1] = '\0';
    addresses[device] = pci.busId;
  }
  return addresses;
}

void watch(const nvml::Library& library, nvml::EventSet set, XidEvents& events) {
  const auto addresses = registerAll(library, set);
  while (!addresses.empty() && !events.closed) {
    nvml::EventData event = {};
    const nvml::Result result = library.eventSetWait(set, &event, kLookMs);
    if (result == nvml::kTimeout) continue;
    if (result != nvml::kSuccess) return;
    const auto address = addresses.find(event.device);
    const std::lock_guard lock(events.mutex);
    if (address != addresses.end() && events.found.size() < kMaxEvents)
      events.found.push_back({address->second, static_cast<unsigned>(event.data)});
  }
}

void run(const Shared& events) {
  nvml::Library library;
  std::string why;
  if (!nvml::open(library, why)) return;
  nvml::EventSet set = nullptr;
  const bool able = library.eventSetCreate != nullptr && library.deviceRegisterEvents != nullptr &&
                    library.eventSetWait != nullptr && library.eventSetFree != nullptr;
  if (able && library.eventSetCreate(&set) == nvml::kSuccess) {
    watch(library, set, *events);
    library.eventSetFree(set);
  }
  library.shutdown();
}

Shared& eventsOf(const Napi::Value& value) { return *value.As<Napi::External<Shared>>().Data(); }

}  // namespace

Napi::Value xidEventsOpen(const Napi::CallbackInfo& call) {
  auto* const held = new Shared(std::make_shared<XidEvents>());
  try {
    std::thread([events = *held] { run(events); }).detach();
  } catch (const std::system_error&) {
    // Without the thread no events come, as on a machine without NVML.
  }
  return Napi::External<Shared>::New(call.Env(), held, [](Napi::Env, Shared* mine) {
    (*mine)->closed = true;
    delete mine;
  });
}

Napi::Value xidEventsTake(const Napi::CallbackInfo& call) {
  const Shared events = eventsOf(call[0]);
  std::vector<Event> found;
  {
    const std::lock_guard lock(events->mutex);
    found = std::exchange(events->found, {});
  }
  auto all = Napi::Array::New(call.Env(), found.size());
  for (uint32_t i = 0; i < found.size(); ++i) {
    auto made = Napi::Object::New(call.Env());
    made.Set("busId", Napi::String::New(call.Env(), found[i].busId));
    made.Set("code", Napi::Number::New(call.Env(), found[i].code));
    all.Set(i, made);
  }
  return all;
}

Napi::Value xidEventsClose(const Napi::CallbackInfo& call) {
  eventsOf(call[0])->closed = true;
  return call.Env().Undefined();
}

}  // namespace ncclrun::binding
