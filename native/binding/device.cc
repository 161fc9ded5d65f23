#include "binding/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "binding/arguments.h"
#include "binding/module.h"

namespace ncclrun::binding {
namespace {

// A function queued on a host stream.
struct QueuedFunction {
  DeviceStream* stream;  // outlives what is queued on it
  std::function<void()> function;
};

void runQueuedFunction(void* argument, ncclResult_t result) {
  const std::unique_ptr<QueuedFunction> queued(static_cast<QueuedFunction*>(argument));
  if (result != ncclSuccess) queued->stream->note(result, ncclGetLastError(nullptr));
  queued->function();
}

}  // namespace

int gpuArgument(const Napi::Value& value) { return value.IsNull() ? -1 : integerArgument<int32_t>(value, "gpu"); }

void useGpu(Napi::Env env, int gpu) {
  thread_local int current = -1;
  if (gpu < 0 || gpu == current) return;
  check(env, ncclrunGpuUse(gpu), nullptr);
  current = gpu;
}

ncclResult_t DeviceStream::submit(Step&& step) {
  if (gpu >= 0 || !capturing) return step();
  steps.push_back(std::move(step));
  return ncclSuccess;
}

ncclResult_t DeviceStream::run(std::function<void()> function) {
  auto queued = std::make_unique<QueuedFunction>(QueuedFunction{this, std::move(function)});
  const ncclResult_t result = ncclrunStreamCallback(host, runQueuedFunction, queued.get());
  if (result == ncclSuccess) static_cast<void>(queued.release());
  return result;
}

ncclResult_t DeviceStream::copy(char* memory, char* array, size_t bytes, bool toDevice) {
  if (gpu >= 0) {
    const std::shared_ptr<Staging>& used = capturing ? graphStaging : staging;
    kept.push_back(used);
    return toDevice ? used->copyTo(memory, array, bytes, cuda, kept) : used->copyFrom(memory, array, bytes, cuda, kept);
  }
  char* const to = toDevice ? memory : array;
  const char* const from = toDevice ? array : memory;
  return submit([this, to, from, bytes] { return run([=] { memmove(to, from, bytes); }); });
}

ncclResult_t DeviceStream::fill(void* to, int value, size_t bytes) {
  if (gpu >= 0) return ncclrunGpuSet(to, value, bytes, cuda);
  return submit([this, to, value, bytes] { return run([=] { memset(to, value, bytes); }); });
}

void DeviceStream::note(ncclResult_t result, const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (failure_ != ncclSuccess) return;
  failure_ = result;
  sentence_ = sentence;
}

std::pair<ncclResult_t, std::string> DeviceStream::takeFailure() {
  const std::lock_guard lock(mutex_);
  return {std::exchange(failure_, ncclSuccess), std::exchange(sentence_, {})};
}

void DeviceEvent::happen() {
  const std::lock_guard lock(mutex_);
  time_ = std::chrono::steady_clock::now();
  happened_.notify_all();
}

void DeviceEvent::wait() {
  std::unique_lock lock(mutex_);
  happened_.wait(lock, [&] { return time_.time_since_epoch().count() != 0; });
}

std::chrono::steady_clock::time_point DeviceEvent::time() {
  const std::lock_guard lock(mutex_);
  return time_;
}

Napi::Value gpuCount(const Napi::CallbackInfo& call) {
  int count = 0;
  check(call.Env(), ncclrunGpuCount(&count), nullptr);
  return Napi::Number::New(call.Env(), count);
}

Napi::Value deviceAllocate(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  const int gpu = gpuArgument(call[0]);
  const auto bytes = integerArgument<uint64_t>(call[1], "bytes");
  useGpu(env, gpu);
  const auto memory = std::make_shared<DeviceMemory>();
  memory->gpu = gpu;
  memory->bytes = bytes;
  check(env, ncclrunMemAlloc(&memory->address, std::max<size_t>(bytes, 1), deviceOf(gpu)), nullptr);
  if (gpu >= 0) {  // memory of the host is zeroed already
    check(env, ncclrunGpuSet(memory->address, 0, bytes, nullptr), nullptr);
    check(env, ncclrunGpuStreamSynchronize(nullptr), nullptr);
  }
  return wrapObject(env, std::make_shared<DeviceBlock>(DeviceBlock{memory}));
}

Napi::Value deviceFree(const Napi::CallbackInfo& call) {
  objectArgument<DeviceBlock>(call[0], "memory")->memory.reset();
  return call.Env().Undefined();
}

}  // namespace ncclrun::binding
