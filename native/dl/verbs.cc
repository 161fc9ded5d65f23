#include "dl/verbs.h"

#include <cstddef>

#include "dl/library.h"

namespace ncclrun::verbs {

static_assert(sizeof(DeviceAttributes) == 232 && offsetof(DeviceAttributes, ports) == 227);
static_assert(offsetof(PortAttributes, linkLayer) == 46);

namespace {

// Under one name the library has functions of several versions, for structures of different layouts.
void* lookUp(void* library, const char* symbol, const char* version) {
  void* const found = dlvsym(library, symbol, version);
  return found != nullptr ? found : dlsym(library, symbol);
}

}  // namespace

bool open(Library& library, std::string& why) {
  constexpr const char* kName = "libibverbs.so.1";
  void* const opened = openLibrary(kName, "NCCL_IBVERBS_LIB", why);
  if (opened == nullptr) return false;
#define NCCLRUN_VERBS_LOOK_UP(member, symbol, version, result, parameters) \
  library.member = reinterpret_cast<decltype(library.member)>(lookUp(opened, symbol, version));
  NCCLRUN_VERBS_FUNCTIONS(NCCLRUN_VERBS_LOOK_UP)
  NCCLRUN_VERBS_OPTIONAL_FUNCTIONS(NCCLRUN_VERBS_LOOK_UP)
#undef NCCLRUN_VERBS_LOOK_UP
#define NCCLRUN_VERBS_CHECK(member, symbol, version, result, parameters) \
  if (library.member == nullptr) {                                       \
    why = std::string(kName) + " has no " symbol;                        \
    return false;                                                        \
  }
  NCCLRUN_VERBS_FUNCTIONS(NCCLRUN_VERBS_CHECK)
#undef NCCLRUN_VERBS_CHECK
  return true;
}

const Library* library(std::string& why) {
  struct Opened {
    Library library;
    std::string why;
    bool isOpen = false;
    Opened() {
      isOpen = open(library, why);
      // Kernels from 5.12 on copy registered pages at fork(), and the library says 2.
      constexpr int kUnneeded = 2;
      const bool needs = library.isForkInitialized == nullptr || library.isForkInitialized() != kUnneeded;
      if (isOpen && needs) library.forkInit();
    }
  };
  static const Opened opened;
  why = opened.why;
  return opened.isOpen ? &opened.library : nullptr;
}

}  // namespace ncclrun::verbs
