// Devices, contexts, ports and addresses.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "objects.h"
#include "stand_in_verbs.h"
#include "state.h"

namespace stand_in_verbs {

World& world() {
  static World& only = *new World;
  return only;
}

void require(const void* object, const char* call) {
  if (world().live.count(object) != 0) return;
  std::fprintf(stderr, "stand-in verbs: %s of an object that does not exist: %p\n", call, object);
  std::abort();
}

double drawShare() { return std::uniform_real_distribution<double>(0, 1)(world().random); }

namespace {

Gid linkLocal(uint64_t guid) {
  Gid gid = {};
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  std::memcpy(gid.raw + 8, &guid, 8);
  return gid;
}

void addGid(Port& port, const Gid& gid) {
  const bool isEthernet = port.configuration.link == kLinkEthernet;
  for (const uint32_t type : {1u, 2u}) {
    if (type == 1 && !(isEthernet && port.configuration.hasVersion1)) continue;
    port.gids.push_back(gid);
    port.gidTypes.push_back(isEthernet ? type : 0);
  }
}

void makePorts(Adapter& adapter, int ordinal) {
  int number = 0;
  for (const PortConfiguration& configuration : adapter.configuration.ports) {
    Port port = {.configuration = configuration, .gids = {}, .gidTypes = {}, .state = configuration.state, .lid = 0};
    const bool isEthernet = configuration.link == kLinkEthernet;
    if (!isEthernet) port.lid = configuration.lid < 0 ? ordinal : configuration.lid;
    if (configuration.hasLinkLocal || !isEthernet) addGid(port, linkLocal(adapter.guid + (uint64_t(number) << 56)));
    std::vector<std::string> texts = configuration.gids;
    if (texts.empty() && isEthernet) {
      texts.push_back("10.8." + std::to_string(number) + "." + std::to_string(ordinal));
    }
    for (const std::string& text : texts) {
      for (const Gid& gid : readGids(text)) addGid(port, gid);
    }
    adapter.ports.push_back(port);
    ++number;
  }
}

void fillDevice(Adapter& adapter, int ordinal) {
  adapter.nodeType = 1;
  std::snprintf(adapter.name, sizeof adapter.name, "%s", adapter.configuration.name.c_str());
  std::snprintf(adapter.characterDevice, sizeof adapter.characterDevice, "uverbs%d", ordinal - 1);
  std::snprintf(adapter.characterDevicePath, sizeof adapter.characterDevicePath, "/sys/class/infiniband_verbs/uverbs%d",
                ordinal - 1);
  std::snprintf(adapter.path, sizeof adapter.path, "/sys/class/infiniband/%s", adapter.configuration.name.c_str());
  const uint8_t guid[8] = {0x50, 0x54, 0x00, 0xff, 0xfe, 0x00, 0x00, static_cast<uint8_t>(ordinal)};
  std::memcpy(&adapter.guid, guid, 8);
  adapter.fabric = std::hash<std::string>()(adapter.configuration.fabric);
}

bool configureFrom(const char* text) {
  World& all = world();
  std::string bad;
  const std::optional<Configuration> read = readConfiguration(text, bad);
  if (!read) {
    std::fprintf(stderr, "stand-in verbs: cannot read %s in STAND_IN_VERBS\n", bad.c_str());
    return false;
  }
  all.configuration = *read;
  all.adapters.clear();
  all.statuses.clear();
  all.refusals.clear();
  all.random.seed(read->seed);
  all.reorders = read->reorders;
  all.delay = read->delay;
  for (const DeviceConfiguration& device : read->devices) {
    Adapter& adapter = all.adapters.emplace_back();
    adapter.configuration = device;
    const int ordinal = static_cast<int>(all.adapters.size());
    fillDevice(adapter, ordinal);
    makePorts(adapter, ordinal);
  }
  return all.isConfigured = true;
}

}  // namespace

bool configure() {
  if (world().isConfigured) return true;
  const char* const text = std::getenv("STAND_IN_VERBS");
  return configureFrom(text == nullptr ? "" : text);
}

}  // namespace stand_in_verbs

using namespace stand_in_verbs;

STAND_IN_EXPORT int stand_in_verbs_configure(const char* text) {
  World& all = world();
  const Lock lock(all.mutex);
  if (!all.contexts.empty()) return EBUSY;
  return configureFrom(text) ? 0 : EINVAL;
}

STAND_IN_EXPORT Device** ibv_get_device_list(int* count) {
  World& all = world();
  const Lock lock(all.mutex);
  if (!configure()) {
    errno = EINVAL;
    return nullptr;
  }
  auto** const list = static_cast<Device**>(std::calloc(all.adapters.size() + 1, sizeof(Device*)));
  int found = 0;
  for (Adapter& adapter : all.adapters) list[found++] = &adapter;
  if (count != nullptr) *count = found;
  return list;
}

STAND_IN_EXPORT void ibv_free_device_list(Device** list) { std::free(list); }
STAND_IN_EXPORT const char* ibv_get_device_name(Device* device) { return device->name; }

STAND_IN_EXPORT ContextHandle* ibv_open_device(Device* device) {
  World& all = world();
  Lock lock(all.mutex);
  all.acknowledged.wait(lock, [&all] { return !all.isStopping; });  // the thread of contexts that were closed just now
  auto& adapter = *static_cast<Adapter*>(device);
  int error = adapter.configuration.openError;
  if (error == 0) error = refused("open", adapter);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const context = new Context();
  context->device = device;
  context->adapter = &adapter;
  context->pollCq = pollCompletions;
  context->requestNotification = requestNotification;
  context->postSend = postSend;
  context->postReceive = postReceive;
  context->commandDescriptor = -1;
  context->eventDescriptor = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  context->completionVectors = 1;
  all.live.insert(context);
  all.contexts.push_back(context);
  startProgress();
  return context;
}

STAND_IN_EXPORT int ibv_close_device(ContextHandle* handle) {
  World& all = world();
  std::thread ended;
  {
    const Lock lock(all.mutex);
    require(handle, "ibv_close_device");
    auto* const context = static_cast<Context*>(handle);
    close(context->eventDescriptor);
    all.live.erase(context);
    std::erase(all.contexts, context);
    delete context;
    if (all.contexts.empty()) {
      all.isStopping = true;
      wakeProgress();
      ended.swap(all.progress);
    }
  }
  if (ended.joinable()) ended.join();
  return 0;
}

STAND_IN_EXPORT int ibv_query_device(ContextHandle* handle, DeviceAttributes* attributes) {
  const Lock lock(world().mutex);
  require(handle, "ibv_query_device");
  const Adapter& adapter = *static_cast<Context*>(handle)->adapter;
  if (adapter.isBroken) return EIO;
  *attributes = {};
  std::snprintf(attributes->firmware, sizeof attributes->firmware, "1.0.0");
  attributes->nodeGuid = attributes->imageGuid = adapter.guid;
  attributes->maxRegistration = UINT64_MAX;
  attributes->pageSizes = 0xfffff000;
  attributes->maxQueuePairs = adapter.configuration.queuePairs;
  attributes->maxWorkRequests = adapter.configuration.workRequests;
  attributes->maxScatter = attributes->maxReadScatter = adapter.configuration.scatter;
  attributes->maxCompletions = adapter.configuration.completions;
  attributes->maxCompletionQueues = attributes->maxRegions = attributes->maxDomains = 1 << 20;
  attributes->maxReadsPerQueuePair = attributes->maxReadsToStart = 128;
  for (const Port& port : adapter.ports) {
    const auto keys = static_cast<uint16_t>(port.configuration.partitionKeys);
    attributes->maxPartitionKeys = std::max(attributes->maxPartitionKeys, keys);
  }
  attributes->ports = static_cast<uint8_t>(adapter.ports.size());
  return 0;
}

namespace {

// Codes of width and speed whose product comes next to a rate.
void setSpeed(int gbps, PortAttributes& attributes) {
  attributes.width = 2;  // four lanes
  constexpr int kPerLane[] = {10, 25, 50, 100};
  constexpr uint8_t kCodes[] = {4, 32, 64, 128};
  attributes.speed = 1;
  for (int step = 0; step < 4; ++step) {
    if (gbps >= 4 * kPerLane[step]) attributes.speed = kCodes[step];
  }
  if (gbps >= 800) attributes.width = 4;  // eight of NDR
}

Port* findPort(ContextHandle* handle, int number) {
  std::vector<Port>& ports = static_cast<Context*>(handle)->adapter->ports;
  return number < 1 || number > static_cast<int>(ports.size()) ? nullptr : &ports[static_cast<size_t>(number) - 1];
}

}  // namespace

STAND_IN_EXPORT int ibv_query_port(ContextHandle* handle, uint8_t number, PortAttributes* attributes) {
  const Lock lock(world().mutex);
  require(handle, "ibv_query_port");
  const Port* const port = findPort(handle, number);
  if (port == nullptr) return EINVAL;
  const bool isEthernet = port->configuration.link == kLinkEthernet;
  *attributes = {};
  attributes->state = port->state;
  attributes->maxMtu = 5;
  attributes->activeMtu = port->configuration.mtu;
  attributes->gids = isEthernet ? 1024 : 128;
  attributes->capabilities = 0x10000;
  attributes->maxMessage = 1u << 30;
  attributes->partitionKeys = static_cast<uint16_t>(port->configuration.partitionKeys);
  attributes->lid = static_cast<uint16_t>(port->lid);
  attributes->managerLid = isEthernet ? 0 : 1;
  attributes->maxVirtualLanes = 1;
  setSpeed(port->configuration.gbps, *attributes);
  attributes->physicalState = port->state == 1 ? 3 : 5;
  attributes->linkLayer = static_cast<uint8_t>(port->configuration.link);
  return 0;
}

STAND_IN_EXPORT int ibv_query_gid(ContextHandle* handle, uint8_t number, int index, Gid* gid) {
  const Lock lock(world().mutex);
  require(handle, "ibv_query_gid");
  const Port* const port = findPort(handle, number);
  if (port == nullptr || index < 0 || index >= 1024) {
    errno = EINVAL;
    return -1;
  }
  *gid = static_cast<size_t>(index) < port->gids.size() ? port->gids[static_cast<size_t>(index)] : Gid{};
  return 0;
}

STAND_IN_EXPORT int _ibv_query_gid_ex(ContextHandle* handle, uint32_t number, uint32_t index, GidEntry* entry,
                                      uint32_t flags, size_t bytes) {
  const Lock lock(world().mutex);
  require(handle, "_ibv_query_gid_ex");
  const Port* const port = findPort(handle, static_cast<int>(number));
  if (flags != 0 || port == nullptr || index >= 1024 || bytes < sizeof *entry) return EINVAL;
  if (index >= port->gids.size() || (port->gids[index].halves[0] | port->gids[index].halves[1]) == 0) return ENODATA;
  *entry = {.gid = port->gids[index], .index = index, .port = number, .type = port->gidTypes[index], .interface = 0};
  return 0;
}

STAND_IN_EXPORT int ibv_fork_init() { return 0; }

STAND_IN_EXPORT int ibv_is_fork_initialized() {
  const Lock lock(world().mutex);
  return configure() ? world().configuration.fork : 0;
}
