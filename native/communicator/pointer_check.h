// Buffers that the program passes to a communicator of the host device, which reads and writes them with processors.
#pragma once
#include "base/error.h"

namespace ncclrun {

// ncclInvalidArgument where `pointer`, the argument `name` of `function`, points to memory that only a GPU reaches.
Status checkHostPointer(const char* function, const char* name, const void* pointer);

}  // namespace ncclrun
