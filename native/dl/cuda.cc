#include "dl/cuda.h"

#include <dlfcn.h>

#include <string_view>

namespace ncclrun::cuda {
namespace {

struct Opened {
  Driver functions;
  std::string why;  // not empty: there is none
};

// A function by its name, or by the one it had before with the same parameters. Names are those of CUDA 12.0, to which
// cuStreamGetId came last, but for one.
void* lookUp(void* library, std::string_view symbol) {
  if (void* const found = dlsym(library, symbol.data()); found != nullptr) return found;
  return symbol == "cuEventElapsedTime_v2" ? dlsym(library, "cuEventElapsedTime") : nullptr;  // before CUDA 12.8
}

std::string open(Driver& functions) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "libcuda.so.1 (NVIDIA's driver) cannot be opened";
#define NCCLRUN_CUDA_LOOK_UP(member, symbol, parameters)                                    \
  functions.member = reinterpret_cast<decltype(functions.member)>(lookUp(library, symbol)); \
  if (functions.member == nullptr) return "libcuda.so.1 has no " symbol ": the driver is older than CUDA 12";
  NCCLRUN_CUDA_FUNCTIONS(NCCLRUN_CUDA_LOOK_UP)
#undef NCCLRUN_CUDA_LOOK_UP
  if (const Result result = functions.init(0); result != kSuccess) {
    const char* name = nullptr;
    functions.getErrorName(result, &name);
    return std::string("cuInit says ") + (name == nullptr ? std::to_string(result) : name);
  }
  int devices = 0;
  if (functions.deviceGetCount(&devices) != kSuccess || devices == 0) return "NVIDIA's driver sees no GPU";
  return {};
}

const Opened& opened() {
  static const auto& once = *new Opened([] {
    Opened made;
    made.why = open(made.functions);
    return made;
  }());
  return once;
}

}  // namespace

const Driver* driver(std::string& why) {
  why = opened().why;
  return why.empty() ? &opened().functions : nullptr;
}

const Driver& driver() { return opened().functions; }

Status statusOf(Result result, const char* what) {
  if (result == kSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  driver().getErrorName(result, &name);
  driver().getErrorString(result, &text);
  return {ncclUnhandledCudaError, std::string(what) + ": " + (name == nullptr ? std::to_string(result) : name) +
                                      (text == nullptr ? "" : std::string(" (") + text + ")")};
}

}  // namespace ncclrun::cuda
