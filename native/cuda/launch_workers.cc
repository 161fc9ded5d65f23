#include "cuda/launch_workers.h"

#include <algorithm>

namespace ncclrun::cuda {

namespace {

// How many items the first queue has.
size_t firstQueue(std::span<const Item> items) {
  const auto end = std::find_if(items.begin(), items.end(),
                                [&](const Item& item) { return item.firstBlock != items.front().firstBlock; });
  return size_t(end - items.begin());
}

}  // namespace

uint32_t countQueues(std::span<const Item> items) {
  uint32_t count = 0;
  for (; !items.empty(); items = items.subspan(firstQueue(items))) count++;
  return count;
}

uint32_t shareWorkers(std::span<Item> items, uint32_t granted) {
  for (Item& item : items) {
    item.workers = uint16_t(std::min<uint32_t>(item.blocks, granted));
    item.firstBlock = uint16_t(item.firstBlock % granted);
  }
  return granted;
}

uint32_t divideWorkers(std::span<Item> items, uint32_t granted, uint32_t blocks, uint32_t queues) {
  uint32_t next = 0;
  while (!items.empty()) {
    const std::span<Item> queue = items.first(firstQueue(items));
    items = items.subspan(queue.size());
    uint32_t own = 0;
    for (const Item& item : queue) own = std::max<uint32_t>(own, item.blocks);
    const uint32_t workers = granted == blocks ? own : 1 + (own - 1) * (granted - queues) / (blocks - queues);
    for (Item& item : queue) {
      item.firstBlock = uint16_t(next);
      item.workers = uint16_t(std::min<uint32_t>(item.blocks, workers));
    }
    next += workers;
  }
  return next;
}

}  // namespace ncclrun::cuda
