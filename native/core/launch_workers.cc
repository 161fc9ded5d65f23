#include "core/launch_workers.h"

#include <algorithm>

namespace ncclrun::cuda {

std::vector<std::span<Item>> queuesOf(std::span<Item> items) {
  std::vector<std::span<Item>> queues;
  while (!items.empty()) {
    const auto end = std::find_if(items.begin(), items.end(),
                                  [&](const Item& item) { return item.firstBlock != items.front().firstBlock; });
    const auto count = size_t(end - items.begin());
    queues.push_back(items.first(count));
    items = items.subspan(count);
  }
  return queues;
}

uint32_t shareWorkers(std::span<Item> items, uint32_t granted) {
  for (Item& item : items) {
    item.workers = uint16_t(std::min<uint32_t>(item.blocks, granted));
    item.firstBlock = uint16_t(item.firstBlock % granted);
  }
  return granted;
}

uint32_t divideWorkers(std::span<Item> items, uint32_t granted, uint32_t blocks) {
  const auto queues = queuesOf(items);
  const auto count = uint32_t(queues.size());
  uint32_t next = 0;
  for (const std::span<Item> queue : queues) {
    uint32_t own = 0;
    for (const Item& item : queue) own = std::max<uint32_t>(own, item.blocks);
    const uint32_t workers = granted == blocks ? own : 1 + (own - 1) * (granted - count) / (blocks - count);
    for (Item& item : queue) {
      item.firstBlock = uint16_t(next);
      item.workers = uint16_t(std::min<uint32_t>(item.blocks, workers));
    }
    next += workers;
  }
  return next;
}

}  // namespace ncclrun::cuda
