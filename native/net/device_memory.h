// GPU memory that a network card reads and writes itself (GPUDirect).
#pragma once
#include <cstdint>
#include <string>

#include "base/error.h"
#include "net/net.h"

namespace ncclrun::net {

// Registers a region of GPU memory with one side of a connection: through its dma-buf, where it and the device have
// one, else, or where that fails, by its address alone, for which the kernel needs a peer memory module. An error has
// the reasons of both. byDmaBuf: which of the two it was.
Status registerDeviceMemory(Connection& connection, const Device& device, const Region& region, Registration& out,
                            bool& byDmaBuf);

struct LoopTest {
  Region region;         // GPU memory, of at least 4 KiB
  bool flushes = false;  // what is received there needs a flush
  uint64_t timeoutNanoseconds = 5'000'000'000;
};
// Proves that a device moves data of GPU memory: connects it to itself, registers the region on both sides, and sends a
// few bytes through it. An error says what failed. On the calling thread, which waits.
Status testLoop(Network& network, uint32_t device, const LoopTest& test, bool& byDmaBuf);

}  // namespace ncclrun::net
