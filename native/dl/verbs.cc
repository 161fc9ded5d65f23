#include "dl/verbs.h"

#include <cstddef>

#include "dl/library.h"

namespace ncclrun::verbs {

static_assert(sizeof(DeviceAttributes) == 232 && offsetof(DeviceAttributes, ports) == 227);
static_assert(offsetof(PortAttributes, linkLayer) == 46);

bool open(Library& library, std::string& why) {
  constexpr const char* kName = "libibverbs.so.1";
  void* const opened = openLibrary(kName, "NCCLRUN_LIBIBVERBS", why);
  if (opened == nullptr) return false;
#define NCCLRUN_VERBS_LOOK_UP(member, symbol, result, parameters)                     \
  library.member = reinterpret_cast<decltype(library.member)>(dlsym(opened, symbol)); \
  if (library.member == nullptr) {                                                    \
    why = std::string(kName) + " has no " symbol;                                     \
    return false;                                                                     \
  }
  NCCLRUN_VERBS_FUNCTIONS(NCCLRUN_VERBS_LOOK_UP)
#undef NCCLRUN_VERBS_LOOK_UP
  return true;
}

}  // namespace ncclrun::verbs
