// What a plugin is given to call: a log and a profiler.
#pragma once
#include <string>

#include "net/plugin/abi.h"

namespace ncclrun::net::plugin {

// Writes a plugin's lines under NCCL_DEBUG; a line of a level that is off is not even formatted, except for warnings.
abi::Log logCallback();

// Records nothing, and succeeds.
abi::Profiler profilerCallback();

// What a plugin has warned of in the last seconds, else empty. A call that fails has usually just written why.
std::string lastWarning();
void forgetWarning();

}  // namespace ncclrun::net::plugin
