#include "base/version.h"

#include "engine_version.h"  // made by native/version.cmake

namespace ncclrun {

const char* engineVersion() { return NCCLRUN_ENGINE_VERSION; }

}  // namespace ncclrun
