// How every part of the engine reports what went wrong: a code to the caller, a sentence for ncclGetLastError.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "nccl.h"

namespace ncclrun {

// A result with its sentence, for errors that travel between threads.
struct Status {
  ncclResult_t code = ncclSuccess;
  std::string sentence;
  bool ok() const { return code == ncclSuccess; }
};

// A value, or the status that says why there is none.
template <class T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(T value) : value_(std::move(value)) {}
  StatusOr(Status status) : status_(std::move(status)) {}
  StatusOr(ncclResult_t code, std::string sentence) : status_{code, std::move(sentence)} {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  // Only if ok().
  T& value() { return *value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

// Returns the status of the expression from the calling function, unless it is success.
#define NCCLRUN_TRY(...)                                                    \
  do {                                                                      \
    if (::ncclrun::Status tried = (__VA_ARGS__); !tried.ok()) return tried; \
  } while (false)

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
