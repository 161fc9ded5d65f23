// NativeHandle of worker/engine/native.ts: a file descriptor, and the mapping of it once somebody needed that.
#pragma once
#include <napi.h>

#include "base/descriptor.h"

namespace ncclrun::binding {

struct Handle {
  static constexpr napi_type_tag kTag = {0x6e63636c72756e01, 0x48616e646c650001};
  static constexpr const char* kName = "a native handle";

  Descriptor descriptor;
  Mapping mapping;  // of the whole memory, writable; made at first use
  size_t bytes = 0;
};

// Throws if it is none, or closed.
std::shared_ptr<Handle> handleArgument(const Napi::Value& value, const char* name);

}  // namespace ncclrun::binding
