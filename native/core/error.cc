#include "core/error.h"

#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "core/fork.h"
#include "core/thread_owned.h"

namespace ncclrun {
namespace {

struct ThreadSentence {
  std::string own;    // of this thread's last fail()
  std::string taken;  // the process's, copied so that it stays valid
};

// Never destroyed: other threads may still fail while the process exits.
struct ProcessSentence {
  std::mutex mutex;
  std::string text;
};
ProcessSentence& processSentence() {
  static auto& sentence = *new ProcessSentence;
  return sentence;
}

std::string print(const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}

void remember(std::string text) {
  std::string& own = threadOwned<ThreadSentence>().own = std::move(text);
  if (inForkedChild()) return;  // the lock may have been held by a thread that the child lacks
  std::lock_guard lock(processSentence().mutex);
  processSentence().text = own;
}

}  // namespace

std::string formatSentence(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = print(format, arguments);
  va_end(arguments);
  return text;
}

ncclResult_t fail(ncclResult_t code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  remember(print(format, arguments));
  va_end(arguments);
  return code;
}

ncclResult_t fail(const Status& status) {
  remember(status.sentence);
  return status.code;
}

const char* lastError() {
  auto& [own, taken] = threadOwned<ThreadSentence>();
  if (!own.empty() || inForkedChild()) return own.c_str();
  std::lock_guard lock(processSentence().mutex);
  taken = processSentence().text;
  return taken.c_str();
}

}  // namespace ncclrun
