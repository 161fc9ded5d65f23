// GPU memory that a network card reads and writes itself (GPUDirect).
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "net/net.h"

namespace ncclrun::net {

// How GPU memory was registered.
struct DeviceRegistration {
  bool byDmaBuf = false;
  Status refused;  // the error of the dma-buf, where one was tried and the address alone served
};
// Registers a region of GPU memory with one side of a connection, or a group: through its dma-buf, where it and the
// device have one, else, or where that fails, by its address alone, for which the kernel needs a peer memory module. An
// error has the reasons of both.
using RegisterMemory = std::function<Status(const Region& region, Registration& out)>;
Status registerDeviceMemory(const RegisterMemory& registerMemory, const Device& device, const Region& region,
                            Registration& out, DeviceRegistration& how);
inline Status registerDeviceMemory(auto& connection, const Device& device, const Region& region, Registration& out,
                                   DeviceRegistration& how) {
  const RegisterMemory registerMemory = [&connection](const Region& one, Registration& made) {
    return connection.registerMemory(one, made);
  };
  return registerDeviceMemory(registerMemory, device, region, out, how);
}

struct LoopTest {
  Region region;         // GPU memory, of at least 4 KiB
  bool flushes = false;  // what is received there needs a flush
  uint64_t timeoutNanoseconds = 5'000'000'000;
};
// Proves that a device moves data of GPU memory: connects it to itself, registers the region on both sides, and sends a
// few bytes through it. An error says what failed. On the calling thread, which waits.
Status testLoop(Network& network, uint32_t device, const LoopTest& test, DeviceRegistration& how);

}  // namespace ncclrun::net
