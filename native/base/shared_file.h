// Memory that processes share by a descriptor: a memfd, or where the kernel or a sandbox refuses that, a file without a
// name in a directory that is memory or at least the user's.
#pragma once
#include <string>

#include "base/descriptor.h"

namespace ncclrun {

struct SharedFile {
  Descriptor descriptor;  // closes on exec; not valid: `why` says so
  bool seals = false;     // F_ADD_SEALS works
  int error = 0;          // errno of the first refusal
  std::string why;        // every call that failed, with its error
};

// `name` is what /proc shows of it.
SharedFile makeSharedFile(const char* name);

}  // namespace ncclrun
