#include "dl/nvml.h"

#include "dl/library.h"

namespace ncclrun::nvml {

bool open(Library& library, std::string& why) {
  constexpr const char* kName = "libnvidia-ml.so.1";
  void* const opened = openLibrary(kName, "NCCLRUN_LIBNVIDIA_ML", why);
  if (opened == nullptr) return false;
#define NCCLRUN_NVML_LOOK_UP(member, symbol, parameters)                               \
  library.member = reinterpret_cast<decltype(library.member)>(dlsym(opened, symbol));  \
  if (library.member == nullptr) {                                                     \
    why = std::string(kName) + " has no " symbol ": the driver is older than CUDA 11"; \
    return false;                                                                      \
  }
  NCCLRUN_NVML_FUNCTIONS(NCCLRUN_NVML_LOOK_UP)
#undef NCCLRUN_NVML_LOOK_UP
#define NCCLRUN_NVML_TRY(member, symbol, parameters) \
  library.member = reinterpret_cast<decltype(library.member)>(dlsym(opened, symbol));
  NCCLRUN_NVML_NEWER_FUNCTIONS(NCCLRUN_NVML_TRY)
#undef NCCLRUN_NVML_TRY
  library.errorString = reinterpret_cast<decltype(library.errorString)>(dlsym(opened, "nvmlErrorString"));
  const Result result = library.init();
  if (result == kSuccess) return true;
  why = "nvmlInit says ";
  why += library.errorString == nullptr ? std::to_string(result) : library.errorString(result);
  return false;
}

}  // namespace ncclrun::nvml
