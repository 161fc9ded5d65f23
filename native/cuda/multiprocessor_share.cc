#include "cuda/multiprocessor_share.h"

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

// The driver's queues, over which streams are spread: what waits in one holds up what other streams have behind it.
uint32_t queues() {
  constexpr uint32_t kDefault = 8;
  const char* const said = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const long number = said == nullptr ? 0 : std::strtol(said, nullptr, 10);
  return number > 0 ? uint32_t(number) : kDefault;
}

// Once in a process: whoever comes so far comes there again and again.
void tellQueues(const Gpu& gpu, size_t communicators) {
  static std::once_flag told;
  std::call_once(told, [&] {
    tellWarning(formatSentence(
        "GPU %d: %zu communicators and %u queues of the driver: ranks that call them on different streams in different "
        "orders may wait for each other for ever. CUDA_DEVICE_MAX_CONNECTIONS=32 gives streams queues of their own",
        gpu.device, communicators, queues()));
  });
}
void tellShortage(const Gpu& gpu, size_t communicators) {
  static std::once_flag told;
  std::call_once(told, [&] {
    tellWarning(formatSentence(
        "GPU %d has %u multiprocessors, and operations of its %zu communicators that are under way or captured want "
        "more: ranks that call them in different orders may wait for each other for ever. NCCLRUN_MAX_SMS bounds what "
        "each launch takes",
        gpu.device, gpu.multiprocessors, communicators));
  });
}

}  // namespace

uint32_t guaranteedBlocks(uint32_t multiprocessors, uint32_t communicators) {
  return std::max(multiprocessors / 2 / std::bit_ceil(std::max(communicators, 1u)), 1u);
}

struct MultiprocessorShare::OfGpu {
  std::vector<MultiprocessorShare*> shares;
  std::atomic<uint32_t> count{0};  // of them, for those who have no time for the mutex
};

// Never freed: communicators may outlive static objects.
MultiprocessorShare::OfGpu& MultiprocessorShare::ofGpu(Device device) {
  static auto& all = *new std::map<Device, OfGpu>;
  std::lock_guard lock(sharesMutex);
  return all[device];
}

MultiprocessorShare::MultiprocessorShare(const Gpu& gpu, std::function<bool()> ended)
    : gpu_(gpu), ended_(std::move(ended)), all_(ofGpu(gpu.device)) {
  std::lock_guard lock(sharesMutex);
  all_.shares.push_back(this);
  all_.count = uint32_t(all_.shares.size());
  if (all_.count > queues()) tellQueues(gpu_, all_.count);
}

MultiprocessorShare::~MultiprocessorShare() {
  std::lock_guard lock(sharesMutex);
  std::erase(all_.shares, this);
  all_.count = uint32_t(all_.shares.size());
}

bool MultiprocessorShare::isWatched() const {
  const uint32_t count = all_.count.load(std::memory_order_relaxed);
  return count > 1 &&
         (launched_.load(std::memory_order_relaxed) & kBlocks) > guaranteedBlocks(gpu_.multiprocessors, count);
}

void MultiprocessorShare::hold(uint32_t blocks, bool captured) {
  if (captured) {
    captured_ = std::max(captured_.load(), blocks);
    return;
  }
  const uint64_t before = launched_.load();
  launched_ = ((before >> kBlockBits) + 1) << kBlockBits | std::max<uint64_t>(before & kBlocks, blocks);
}

// At least the guaranteed ones.
uint32_t MultiprocessorShare::held(uint32_t guaranteed) {
  uint64_t launched = launched_.load();
  if ((launched & kBlocks) > guaranteed && told_ == launched >> kBlockBits && ended_() &&
      launched_.compare_exchange_strong(launched, launched & ~kBlocks))
    launched &= ~kBlocks;
  return std::max({uint32_t(launched & kBlocks), captured_.load(), guaranteed});
}

uint32_t MultiprocessorShare::take(uint32_t wanted, uint32_t least, bool captured) {
  const uint32_t count = all_.count.load(std::memory_order_relaxed);
  const uint32_t guaranteed = guaranteedBlocks(gpu_.multiprocessors, count), own = std::max(guaranteed, least);
  if (count > 1) held(guaranteed);  // gives back what earlier launches held, where they have ended
  if (count == 1 || wanted <= own) {
    hold(wanted, captured);
    return wanted;
  }
  std::lock_guard lock(sharesMutex);  // until the blocks are held: nobody else may count on them
  uint32_t others = 0;
  for (MultiprocessorShare* share : all_.shares) {
    if (share != this) others += share->held(guaranteed);
  }
  const uint32_t left = gpu_.multiprocessors - std::min(others, gpu_.multiprocessors);
  if (left < own) tellShortage(gpu_, count);
  const uint32_t blocks = std::clamp(left, own, wanted);
  hold(blocks, captured);
  return blocks;
}

}  // namespace ncclrun::cuda
