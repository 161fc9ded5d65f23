#include "host/default_stream_slots.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "base/thread_owned.h"

namespace ncclrun {
namespace {

// Slots of live threads.
struct HeldSlots {
  std::mutex mutex;
  std::set<uint32_t> slots;
};

HeldSlots& held() {
  static auto* const all = new HeldSlots;  // threads may end while destructors run
  return *all;
}

struct Slots {
  std::vector<uint32_t> own, used;

  ~Slots() {
    std::lock_guard lock(held().mutex);
    for (const uint32_t slot : own) held().slots.erase(slot);
  }
};

bool has(std::span<const uint32_t> slots, uint32_t slot) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

}  // namespace

uint32_t claimDefaultStreamSlot(std::span<const uint32_t> taken) {
  std::vector<uint32_t>& own = threadOwned<Slots>().own;
  for (const uint32_t slot : own) {
    if (!has(taken, slot)) return slot;
  }
  std::lock_guard lock(held().mutex);
  uint32_t slot = 0;
  while (has(taken, slot) || held().slots.contains(slot)) slot++;
  held().slots.insert(slot);
  own.push_back(slot);
  return slot;
}

void useDefaultStreamSlot(uint32_t slot) {
  Slots& slots = threadOwned<Slots>();
  if (!has(slots.own, slot) && !has(slots.used, slot)) slots.used.push_back(slot);
}

std::vector<uint32_t> ownDefaultStreamSlots() {
  const Slots& slots = threadOwned<Slots>();
  std::vector<uint32_t> all = slots.own;
  if (!all.empty()) all.insert(all.end(), slots.used.begin(), slots.used.end());
  return all;
}

}  // namespace ncclrun
