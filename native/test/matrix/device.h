// Where the engine's buffers lie: the test's own memory on the host device, copies of it on a GPU.
#pragma once
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "ncclrun.h"

namespace matrix {

class Device {
 public:
  // Before the communicator is made: rank k of a host takes its GPU k, if there is one.
  Device() {
    const char* const local = std::getenv("NCCLRUN_LOCAL_RANK");
    const char* const device = std::getenv("NCCLRUN_DEVICE");
    int gpus = 0;
    ncclrunGpuCount(&gpus);
    onGpu_ = gpus > 0 && (device == nullptr || std::string(device) != "host");
    if (onGpu_) ncclrunGpuUse(local == nullptr ? 0 : std::atoi(local) % gpus);
    if (onGpu_) {
      ncclrunGpuStreamCreate(&gpuStream_);
    } else {
      ncclrunStreamCreate(&hostStream_);
    }
  }
  ~Device() {
    for (const auto& [host, memory] : copies_) ncclMemFree(memory.address);
    if (onGpu_) {
      ncclrunGpuStreamDestroy(gpuStream_);
    } else {
      ncclrunStreamDestroy(hostStream_);
    }
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  bool onGpu() const { return onGpu_; }
  cudaStream_t stream() const { return onGpu_ ? gpuStream_ : reinterpret_cast<cudaStream_t>(hostStream_); }
  ncclResult_t synchronize() {
    return onGpu_ ? ncclrunGpuStreamSynchronize(gpuStream_) : ncclrunStreamSynchronize(hostStream_);
  }

  // What `buffer` holds, where the engine can reach it, until fetch(). `slot` tells buffers of one call apart. As far
  // from a page's beginning as the buffer is from its own.
  char* place(int slot, std::vector<char>& buffer) {
    if (!onGpu_) return buffer.data();
    Memory& memory = copies_[slot];
    if (memory.bytes < buffer.size()) {
      ncclMemFree(memory.address);
      memory.bytes = buffer.size() * 2 + 4096;
      if (ncclMemAlloc(&memory.address, memory.bytes) != ncclSuccess) std::abort();
    }
    ncclrunGpuCopy(memory.address, buffer.data(), buffer.size(), gpuStream_);
    return static_cast<char*>(memory.address);
  }
  void fetch(int slot, std::vector<char>& buffer) {
    if (!onGpu_) return;
    ncclrunGpuCopy(buffer.data(), copies_[slot].address, buffer.size(), gpuStream_);
    ncclrunGpuStreamSynchronize(gpuStream_);
  }

 private:
  struct Memory {
    void* address = nullptr;
    size_t bytes = 0;
  };
  bool onGpu_ = false;
  cudaStream_t gpuStream_ = nullptr;
  ncclrunStream_t hostStream_ = nullptr;
  std::map<int, Memory> copies_;
};

}  // namespace matrix
