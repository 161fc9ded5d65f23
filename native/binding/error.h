// Errors as programs see them: Error objects of name NativeError whose `code` is an errno name ("ECONNREFUSED") or an
// ncclResult_t.
#pragma once
#include <napi.h>

#include <string>

#include "nccl.h"

namespace ncclrun::binding {

// What failed, and the system's reason.
Napi::Error systemError(Napi::Env env, int errorNumber, const std::string& what);
Napi::Error ncclError(Napi::Env env, ncclResult_t result, const std::string& sentence);

}  // namespace ncclrun::binding
