// How every part of the engine reports what went wrong: a code to the caller, a sentence for ncclGetLastError.
#pragma once
#include <string>

#include "nccl.h"

namespace ncclrun {

// A result with its sentence, for errors that travel between threads.
struct Status {
  ncclResult_t code = ncclSuccess;
  std::string sentence;
  bool ok() const { return code == ncclSuccess; }
};

// Remembers the sentence for this thread and, because ncclGetLastError(NULL) is often called from another one, for the
// process; returns `code`.
[[gnu::format(printf, 2, 3)]] ncclResult_t fail(ncclResult_t code, const char* format, ...);
ncclResult_t fail(const Status& status);
// The same, or ncclSuccess.
inline ncclResult_t result(const Status& status) { return status.ok() ? ncclSuccess : fail(status); }

// The sentence of the calling thread's last fail(), else the process's last; empty if there was none. The memory stays
// as long as the process; what it says changes with a later failure, after the thread's end one of another thread.
const char* lastError();

// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string formatSentence(const char* format, ...);

}  // namespace ncclrun
