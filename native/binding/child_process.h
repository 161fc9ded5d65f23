// Starts the guardian. Node's own child_process would do it too, but costs several milliseconds of each start to load.
#pragma once
#include <sys/types.h>

#include <string>

#include "core/descriptor.h"

namespace ncclrun::binding {

struct ChildProcess {
  Descriptor socket;  // to its descriptor 3
  pid_t pid = 0;      // a child of ours, to be reaped
};

// In a session of its own (a terminal's ^C and hang-up are ours to judge) and in /, with stderr inherited and nothing
// else. 0 or errno.
int startGuardian(const std::string& path, const std::string& argument, ChildProcess& out);

}  // namespace ncclrun::binding
