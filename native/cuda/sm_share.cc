#include "cuda/sm_share.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/debug.h"
#include "base/error.h"

namespace ncclrun::cuda {
namespace {

std::mutex sharesMutex;  // of all shares

// The driver's hardware queues, over which it spreads streams: a wait in one blocks later work of other streams in it.
uint32_t queues() {
  constexpr uint32_t kDefault = 8;
  const char* const value = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const long number = value == nullptr ? 0 : std::strtol(value, nullptr, 10);
  return number > 0 ? uint32_t(number) : kDefault;
}

// Logged once per process, because the condition recurs.
void warnOfQueues(const Gpu& gpu, size_t communicators) {
  static std::once_flag warned;
  std::call_once(warned, [&] {
    logWarning(formatSentence(
        "GPU %d has %zu communicators and %u hardware queues: ranks that call them on different streams in different "
        "orders may deadlock. Set CUDA_DEVICE_MAX_CONNECTIONS=32 to give each stream a queue of its own",
        gpu.device, communicators, queues()));
  });
}
void warnOfSmShortage(const Gpu& gpu, size_t communicators) {
  static std::once_flag warned;
  std::call_once(warned, [&] {
    logWarning(
        formatSentence("GPU %d has %u SMs, and running or captured operations of its %zu communicators need more: "
                       "ranks that call them "
                       "in different orders may deadlock. Set NCCLRUN_MAX_SMS to limit the SMs of each launch",
                       gpu.device, gpu.sms, communicators));
  });
}

}  // namespace

uint32_t guaranteedBlocks(uint32_t sms, uint32_t communicators) {
  return std::max(sms / 2 / std::bit_ceil(std::max(communicators, 1u)), 1u);
}

struct SmShare::OfGpu {
  std::vector<SmShare*> shares;
  std::atomic<uint32_t> count{0};  // number of shares, readable without the mutex
};

// Never freed: communicators may outlive static objects.
SmShare::OfGpu& SmShare::ofGpu(Device device) {
  static auto& all = *new std::map<Device, OfGpu>;
  std::lock_guard lock(sharesMutex);
  return all[device];
}

SmShare::SmShare(const Gpu& gpu, std::function<bool()> ended)
    : gpu_(gpu), ended_(std::move(ended)), all_(ofGpu(gpu.device)) {
  std::lock_guard lock(sharesMutex);
  all_.shares.push_back(this);
  all_.count = uint32_t(all_.shares.size());
  if (all_.count > queues()) warnOfQueues(gpu_, all_.count);
}

SmShare::~SmShare() {
  std::lock_guard lock(sharesMutex);
  std::erase(all_.shares, this);
  all_.count = uint32_t(all_.shares.size());
}

bool SmShare::isWatched() const {
  const uint32_t count = all_.count.load(std::memory_order_relaxed);
  return count > 1 && (launched_.load(std::memory_order_relaxed) & kBlocks) > guaranteedBlocks(gpu_.sms, count);
}

void SmShare::hold(uint32_t blocks, bool captured) {
  if (captured) {
    captured_ = std::max(captured_.load(), blocks);
    return;
  }
  const uint64_t before = launched_.load();
  launched_ = ((before >> kBlockBits) + 1) << kBlockBits | std::max<uint64_t>(before & kBlocks, blocks);
}

// Returns at least the guaranteed ones.
uint32_t SmShare::held(uint32_t guaranteed) {
  uint64_t launched = launched_.load();
  if ((launched & kBlocks) > guaranteed && coveredLaunches_ == launched >> kBlockBits && ended_() &&
      launched_.compare_exchange_strong(launched, launched & ~kBlocks))
    launched &= ~kBlocks;
  return std::max({uint32_t(launched & kBlocks), captured_.load(), guaranteed});
}

uint32_t SmShare::take(uint32_t wanted, uint32_t min, bool captured) {
  const uint32_t count = all_.count.load(std::memory_order_relaxed);
  const uint32_t guaranteed = guaranteedBlocks(gpu_.sms, count), own = std::max(guaranteed, min);
  if (count > 1) held(guaranteed);  // releases what earlier launches held, where they have ended
  if (count == 1 || wanted <= own) {
    hold(wanted, captured);
    return wanted;
  }
  std::lock_guard lock(sharesMutex);  // held until the blocks are taken, so that no other thread grants them
  uint32_t others = 0;
  for (SmShare* share : all_.shares) {
    if (share != this) others += share->held(guaranteed);
  }
  const uint32_t left = gpu_.sms - std::min(others, gpu_.sms);
  if (left < own) warnOfSmShortage(gpu_, count);
  const uint32_t blocks = std::clamp(left, own, wanted);
  hold(blocks, captured);
  return blocks;
}

}  // namespace ncclrun::cuda
