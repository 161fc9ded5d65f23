#include "core/lanes.h"

#include <algorithm>

#include "core/thread_owned.h"

namespace ncclrun {
namespace {

struct Lanes {
  std::vector<uint32_t> numbers;
};

}  // namespace

uint32_t claimLane(std::span<const uint32_t> taken) {
  std::vector<uint32_t>& lanes = threadOwned<Lanes>().numbers;
  uint32_t lane = lanes.empty() ? 0 : lanes.front();
  while (std::find(taken.begin(), taken.end(), lane) != taken.end()) lane++;
  if (std::find(lanes.begin(), lanes.end(), lane) == lanes.end()) lanes.push_back(lane);
  return lane;
}

const std::vector<uint32_t>& ownLanes() { return threadOwned<Lanes>().numbers; }

}  // namespace ncclrun
