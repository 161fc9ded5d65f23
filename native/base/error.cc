#include "base/error.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <vector>

#include "base/fork.h"
#include "base/thread_owned.h"

namespace ncclrun {
namespace {

// What programs have a pointer to. Longer sentences are cut.
struct Sentences {
  static constexpr size_t kBytes = 4096;
  std::array<char, kBytes> own{};    // of a thread's last fail()
  std::array<char, kBytes> taken{};  // the process's, copied so that no other thread changes it meanwhile
};

void put(std::array<char, Sentences::kBytes>& to, const std::string& text) {
  const auto isInside = [&](size_t at) { return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80; };
  size_t length = std::min(text.size(), to.size() - 1);
  while (length > 0 && isInside(length)) length--;  // not within a character
  std::copy_n(text.data(), length, to.data());
  to[length] = '\0';
}

// Those of threads that have ended, which serve others: the memory is never freed.
struct Unused {
  std::mutex mutex;
  std::vector<Sentences*> all;
};
Unused& unused() {
  static auto& unused = *new Unused;
  return unused;
}

class ThreadSentences {
 public:
  ThreadSentences() : sentences_(take()) {}
  ThreadSentences(const ThreadSentences&) = delete;
  ThreadSentences& operator=(const ThreadSentences&) = delete;
  ~ThreadSentences() {
    if (inForkedChild()) return;
    std::lock_guard lock(unused().mutex);
    unused().all.push_back(&sentences_);
  }

  void fail(const std::string& text) {
    failed_ = true;
    put(sentences_.own, text);
  }
  bool failed() const { return failed_; }
  const char* own() const { return failed_ ? sentences_.own.data() : ""; }
  const char* take(const std::string& text) {
    put(sentences_.taken, text);
    return sentences_.taken.data();
  }

 private:
  static Sentences& take() {
    if (inForkedChild()) return *new Sentences;  // the lock may have been held by a thread that the child lacks
    std::lock_guard lock(unused().mutex);
    auto& all = unused().all;
    if (all.empty()) return *new Sentences;
    Sentences& last = *all.back();
    all.pop_back();
    return last;
  }

  Sentences& sentences_;
  bool failed_ = false;
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

void remember(const std::string& text) {
  threadOwned<ThreadSentences>().fail(text);
  if (inForkedChild()) return;  // the lock may have been held by a thread that the child lacks
  std::lock_guard lock(processSentence().mutex);
  processSentence().text = text;
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
  auto& sentences = threadOwned<ThreadSentences>();
  if (sentences.failed() || inForkedChild()) return sentences.own();
  std::lock_guard lock(processSentence().mutex);
  return sentences.take(processSentence().text);
}

}  // namespace ncclrun
