// Assigns the blocks of a launch to its items, where it has fewer blocks than its items have parts.
#pragma once
#include <cstdint>
#include <span>

#include "plan/launch_format.h"

namespace ncclrun::cuda {

// A queue: items that begin at the same block, one behind the other, which are messages of one peer and direction.
uint32_t countQueues(std::span<const Item> items);

// Both return the launch's blocks, at most `granted`.

// All blocks go through all items, as collectives can, which all ranks call in one order.
uint32_t shareWorkers(std::span<Item> items, uint32_t granted);
// Each queue has blocks of its own, as sends and receives must, of which each may wait for any other. `blocks`: that
// they want together. At least one for each is granted; of the others each gets as many as it wants of all.
uint32_t divideWorkers(std::span<Item> items, uint32_t granted, uint32_t blocks, uint32_t queues);

}  // namespace ncclrun::cuda
