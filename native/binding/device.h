// Memory, streams, events and graphs for operations on buffers of a device: worker/device in native code. On a GPU they
// are the driver's. The host device has twins: memory of the engine, host streams, whose copies and fills are
// callbacks, points of them that another stream's thread waits for, and recorded calls.
#pragma once
#include <napi.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "binding/communicator.h"
#include "binding/staging.h"
#include "ncclrun.h"

namespace ncclrun::binding {

// A GPU by CUDA's number, or null: -1, the host device.
int gpuArgument(const Napi::Value& value);
inline ncclrunDevice_t deviceOf(int gpu) { return gpu < 0 ? ncclrunDeviceHost : ncclrunDeviceCuda; }
// Makes it this thread's; nothing for -1.
void useGpu(Napi::Env env, int gpu);

// Freed on the event loop, or where the environment has ended on a thread of its own: never in a driver's callback.
struct DeviceMemory {
  void* address = nullptr;
  size_t bytes = 0;
  int gpu = -1;
  ~DeviceMemory() { ncclMemFree(address); }
};

// MemoryHandle of native.ts; what is under way and graphs hold the memory too.
struct DeviceBlock {
  static constexpr napi_type_tag kTag = {0x6e63636c72756e04, 0x4d656d6f72790001};
  static constexpr const char* kName = "memory of a device";
  std::shared_ptr<DeviceMemory> memory;  // null: freed
};

using Kept = std::vector<std::shared_ptr<void>>;
using Step = std::function<ncclResult_t()>;

// StreamHandle.
struct DeviceStream {
  static constexpr napi_type_tag kTag = {0x6e63636c72756e05, 0x53747265616d0001};
  static constexpr const char* kName = "a stream";

  int gpu = -1;
  ncclrunStream_t host = nullptr;
  cudaStream_t cuda = nullptr;
  Kept kept;                                 // of what was queued since the last end()
  bool capturing = false;                    // what is queued goes into a graph
  std::vector<Step> steps;                   // on the host device: of that graph
  std::vector<std::shared_ptr<Comm>> comms;  // of that graph
  std::shared_ptr<Staging> staging;          // on a GPU
  std::shared_ptr<Staging> graphStaging;     // of the graph that is captured now, or next

  cudaStream_t queue() const { return gpu < 0 ? reinterpret_cast<cudaStream_t>(host) : cuda; }
  // Does it now, or at each launch of the graph that is being captured.
  ncclResult_t submit(Step&& step);
  // Between memory of the device and an array.
  ncclResult_t copy(char* memory, char* array, size_t bytes, bool toDevice);
  ncclResult_t fill(void* to, int value, size_t bytes);
  // Host device: the function runs on the stream's thread in queue order.
  ncclResult_t run(std::function<void()> function);
  // The first failure since the last call. Callbacks of ours take them from the stream: one tells the next.
  void note(ncclResult_t result, const std::string& sentence);
  std::pair<ncclResult_t, std::string> takeFailure();

 private:
  std::mutex mutex_;
  ncclResult_t failure_ = ncclSuccess;
  std::string sentence_;
};

// EventHandle.
struct DeviceEvent {
  static constexpr napi_type_tag kTag = {0x6e63636c72756e06, 0x4576656e74000001};
  static constexpr const char* kName = "an event";

  int gpu = -1;
  ncclrunGpuEvent_t cuda = nullptr;
  ~DeviceEvent() {
    if (cuda != nullptr) ncclrunGpuEventDestroy(cuda);
  }
  void happen();
  void wait();
  std::chrono::steady_clock::time_point time();  // the epoch: it has not happened

 private:
  std::mutex mutex_;
  std::condition_variable happened_;
  std::chrono::steady_clock::time_point time_;
};

// GraphHandle.
struct DeviceGraph {
  static constexpr napi_type_tag kTag = {0x6e63636c72756e07, 0x4772617068000001};
  static constexpr const char* kName = "a graph";

  int gpu = -1;
  ncclrunGpuGraph_t cuda = nullptr;
  std::vector<Step> steps;
  Kept kept;
  std::vector<std::shared_ptr<Comm>> comms;
  ~DeviceGraph() { ncclrunGpuGraphDestroy(cuda); }
};

}  // namespace ncclrun::binding
