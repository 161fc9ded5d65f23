#include "dl/cuda.h"

#include <dlfcn.h>

#include <string_view>

namespace ncclrun::cuda {
namespace {

struct Opened {
  Driver functions;
  std::string why;  // not empty: there is none
  int gpus = 0;
};

// A function by its name, or by the one it had before with the same parameters. Names are those of CUDA 12.0, to which
// cuStreamGetId came last, but for one.
void* lookUp(void* library, std::string_view symbol) {
  if (void* const found = dlsym(library, symbol.data()); found != nullptr) return found;
  return symbol == "cuEventElapsedTime_v2" ? dlsym(library, "cuEventElapsedTime") : nullptr;  // before CUDA 12.8
}

// The first function that the library lacks; null: it has all.
const char* lookUpAll(void* library, Driver& functions) {
  const char* missing = nullptr;
#define NCCLRUN_CUDA_LOOK_UP(member, symbol, parameters)                                    \
  functions.member = reinterpret_cast<decltype(functions.member)>(lookUp(library, symbol)); \
  if (functions.member == nullptr && missing == nullptr) missing = symbol;
  NCCLRUN_CUDA_FUNCTIONS(NCCLRUN_CUDA_LOOK_UP)
#undef NCCLRUN_CUDA_LOOK_UP
  return missing;
}

std::string open(Driver& functions, int& gpus) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "libcuda.so.1 (NVIDIA's driver) cannot be opened";
  const char* const missing = lookUpAll(library, functions);
  const std::string tooOld =
      missing == nullptr ? "" : std::string("libcuda.so.1 has no ") + missing + ": the driver is older than CUDA 12";
  if (functions.init == nullptr || functions.deviceGetCount == nullptr) return tooOld;
  if (const Result result = functions.init(0); result != kSuccess) {
    const char* name = nullptr;
    if (functions.getErrorName != nullptr) functions.getErrorName(result, &name);
    return std::string("cuInit says ") + (name == nullptr ? std::to_string(result) : name);
  }
  if (functions.deviceGetCount(&gpus) != kSuccess || gpus == 0) return "NVIDIA's driver sees no GPU";
  return tooOld;
}

const Opened& opened() {
  static const auto& once = *new Opened([] {
    Opened made;
    made.why = open(made.functions, made.gpus);
    return made;
  }());
  return once;
}

}  // namespace

const Driver* driver(std::string& why) {
  why = opened().why;
  return why.empty() ? &opened().functions : nullptr;
}

int visibleGpus() { return opened().gpus; }

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
