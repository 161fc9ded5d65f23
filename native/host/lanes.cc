#include "host/lanes.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "base/thread_owned.h"

namespace ncclrun {
namespace {

// Lanes of the threads that live.
struct HeldLanes {
  std::mutex mutex;
  std::set<uint32_t> lanes;
};

HeldLanes& held() {
  static auto* const all = new HeldLanes;  // threads may end while destructors run
  return *all;
}

struct Lanes {
  std::vector<uint32_t> own, used;

  ~Lanes() {
    std::lock_guard lock(held().mutex);
    for (const uint32_t lane : own) held().lanes.erase(lane);
  }
};

bool has(std::span<const uint32_t> lanes, uint32_t lane) {
  return std::find(lanes.begin(), lanes.end(), lane) != lanes.end();
}

}  // namespace

uint32_t claimLane(std::span<const uint32_t> taken) {
  std::vector<uint32_t>& own = threadOwned<Lanes>().own;
  for (const uint32_t lane : own) {
    if (!has(taken, lane)) return lane;
  }
  std::lock_guard lock(held().mutex);
  uint32_t lane = 0;
  while (has(taken, lane) || held().lanes.contains(lane)) lane++;
  held().lanes.insert(lane);
  own.push_back(lane);
  return lane;
}

void useLane(uint32_t lane) {
  Lanes& lanes = threadOwned<Lanes>();
  if (!has(lanes.own, lane) && !has(lanes.used, lane)) lanes.used.push_back(lane);
}

std::vector<uint32_t> ownLanes() {
  const Lanes& lanes = threadOwned<Lanes>();
  std::vector<uint32_t> all = lanes.own;
  if (!all.empty()) all.insert(all.end(), lanes.used.begin(), lanes.used.end());
  return all;
}

}  // namespace ncclrun
