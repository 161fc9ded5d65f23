#include "cuda/net/gpu_direct.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "base/debug.h"
#include "base/variables.h"
#include "cuda/net/gpu_slots.h"
#include "net/device_memory.h"

namespace ncclrun::cuda {
namespace {

constexpr uint64_t kTestBytes = 2 << 20;

// Of the first GPUs whose NICs' writes are visible to kernels in the order in which they came.
constexpr int kOrderedFrom = 9;

bool isSet(const char* name) {
  const char* const value = ncclVariable(name);
  return value != nullptr && std::strcmp(value, "0") != 0 && *value != '\0';
}

bool isThroughC2c(const plan::GpuNicRecord& record) { return std::string_view(record.path, 3) == "P2C"; }

bool needsFlush(const Gpu& gpu, const net::Device& device, const plan::GpuNicRecord& record) {
  if (isSet("NCCL_GDR_FLUSH_DISABLE")) return false;
  int major = 0;
  driver().deviceGetAttribute(&major, kAttributeMajor, gpu.device);
  return major < kOrderedFrom || isThroughC2c(record) || device.forceFlush || isSet("NCCL_NET_FORCE_FLUSH");
}

struct Proof {
  Status status;
  net::DeviceRegistration how;
};

Proof test(const Gpu& gpu, net::Network& network, uint32_t device, bool flushes) {
  Proof proof;
  GpuSlots memory(gpu);
  GpuSlots::Range range;
  proof.status = memory.take(kTestBytes, range);
  if (!proof.status.ok()) return proof;
  const net::Region region{.address = range.address,
                           .bytes = kTestBytes,
                           .type = net::MemoryType::device,
                           .dmaBufDescriptor = range.dmaBuf,
                           .dmaBufOffset = range.offset};
  proof.status = net::testLoop(network, device, {.region = region, .flushes = flushes}, proof.how);
  return proof;
}

// Each once per process.
Proof proofOf(const Gpu& gpu, net::Network& network, uint32_t device, bool flushes) {
  using Key = std::tuple<std::string, std::string, uint64_t, uint32_t, uint64_t, bool>;
  static std::mutex mutex;
  static auto& known = *new std::map<Key, Proof>;
  std::lock_guard lock(mutex);
  const net::Device& facts = network.devices()[device];
  const Key key(network.name(), facts.name, facts.guid, facts.port, gpu.busId, flushes);
  const auto found = known.find(key);
  return found != known.end() ? found->second : known[key] = test(gpu, network, device, flushes);
}

std::string reasonOf(uint8_t verdict, const plan::GpuNicRecord& record) {
  switch (plan::GpuDirect(verdict)) {
    case plan::GpuDirect::allowed:
      return {};
    case plan::GpuDirect::tooFar:
      return "the path " + std::string(record.path, strnlen(record.path, sizeof record.path)) +
             " is longer than NCCL_NET_GDR_LEVEL allows";
    case plan::GpuDirect::gpuRefuses:
      return "the GPU lets no card reach its memory";
    case plan::GpuDirect::noReads:
      return "what is sent is not read there (NCCL_NET_GDR_READ)";
  }
  return "unknown";
}

// Empty: the device can.
std::string incapacity(const Gpu& gpu, const net::Network& network, const net::Device& device) {
  if (!device.deviceMemory) return "the network " + network.name() + " does not register GPU memory there";
  int isSupported = 0;
  driver().deviceGetAttribute(&isSupported, kAttributeGpuDirect, gpu.device);
  return isSupported != 0 ? "" : reasonOf(uint8_t(plan::GpuDirect::gpuRefuses), {});
}

std::string describe(const GpuDirect::Use& use, const Proof& proof, const std::string& noSends) {
  std::string text = use.byDmaBuf ? "GPUDirect by dma-buf" : "GPUDirect by peer memory";
  if (!proof.how.refused.ok()) text += " (" + proof.how.refused.sentence + ")";
  text += use.flushes ? ", receives with a flush" : ", receives";
  return text + (use.sends ? ", sends" : ", no sends: " + noSends);
}

}  // namespace

bool GpuDirect::any() const {
  return std::any_of(uses_.begin(), uses_.end(), [](const Use& use) { return use.receives || use.sends; });
}

void GpuDirect::decide(const Gpu& gpu, const PlanView& plan, uint32_t rank, net::Network& network) {
  const auto devices = network.devices();
  uses_.assign(devices.size(), {});
  // Devices beyond the plan's NICs have no connections.
  const size_t count = std::min<size_t>(devices.size(), std::max(plan.nicCount(), 1u));
  for (uint32_t device = 0; device < count; device++) {
    const net::Device& facts = devices[device];
    const std::string which = "GPU of " + plan.describe(rank) + ", NIC " + facts.name + ": ";
    const plan::GpuNicRecord record = plan.gpuNic(plan.peer(rank).localIndex, facts.pciPath);
    std::string why = incapacity(gpu, network, facts);
    if (why.empty()) why = reasonOf(record.receives, record);
    if (!why.empty()) {
      logInfo(which + "no GPUDirect: " + why, Subsystem::net);
      continue;
    }
    const bool flushes = needsFlush(gpu, facts, record);
    const Proof proof = proofOf(gpu, network, device, flushes);
    if (!proof.status.ok()) {
      logWarning(which + "no GPUDirect, slots lie in memory of the host: " + proof.status.sentence);
      continue;
    }
    const Use use{.receives = true,
                  .sends = record.sends == uint8_t(plan::GpuDirect::allowed),
                  .flushes = flushes,
                  .byDmaBuf = proof.how.byDmaBuf};
    uses_[device] = use;
    logInfo(which + describe(use, proof, reasonOf(record.sends, record)), Subsystem::net);
  }
}

}  // namespace ncclrun::cuda
