// Memory of the engine as an ArrayBuffer.
#include <algorithm>

#include "binding/arguments.h"
#include "binding/communicator.h"
#include "binding/module.h"

namespace ncclrun::binding {

Napi::Value memoryAllocate(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  const auto bytes = integerArgument<uint64_t>(call[0], "bytes");
  void* memory = nullptr;
  check(env, ncclrunMemAlloc(&memory, std::max<size_t>(bytes, 1), ncclrunDeviceHost), nullptr);
  // Runs when it is collected, after memoryFree, or when the environment goes, which may be before its operations are
  // stopped.
  const auto finalizer = [settler = Settler::of(env)](Napi::Env, void* data) {
    settler->whenQuiet([data] { ncclMemFree(data); });
  };
  return Napi::ArrayBuffer::New(env, memory, bytes, finalizer);
}

Napi::Value memoryFree(const Napi::CallbackInfo& call) {
  if (!call[0].IsArrayBuffer()) throw wrongArgument(call.Env(), "buffer", "an ArrayBuffer");
  call[0].As<Napi::ArrayBuffer>().Detach();
  return call.Env().Undefined();
}

}  // namespace ncclrun::binding
