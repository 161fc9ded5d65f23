// How every part of the engine reports what went wrong: a code to the caller, a sentence for ncclGetLastError.
#pragma once
#include <string>

#include "nccl.h"

namespace ncclrun {

// Remembers the sentence for this thread (and, if nobody asked yet, for the process: ncclGetLastError(NULL) is often called from another
// thread) and returns `code`.
[[gnu::format(printf, 2, 3)]] ncclResult_t fail(ncclResult_t code, const char* format, ...);

// The sentence of the calling thread's last fail(), else the process's; empty if there was none. Valid until this thread's next call.
const char* lastError();

// A result with its sentence, for errors that travel between threads.
struct Status {
  ncclResult_t code = ncclSuccess;
  std::string sentence;
  bool ok() const { return code == ncclSuccess; }
};

}  // namespace ncclrun
