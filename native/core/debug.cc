#include "core/debug.h"

#include <strings.h>
#include <unistd.h>

#include <cstdlib>

#include "core/error.h"

namespace ncclrun {
namespace {

// NCCL's levels: each writes what those before it write. Upper and lower case mean the same.
bool wantsInfo() {
  const char* const level = std::getenv("NCCL_DEBUG");
  if (level == nullptr) return false;
  for (const char* const one : {"INFO", "ABORT", "TRACE"}) {
    if (strcasecmp(level, one) == 0) return true;
  }
  return false;
}

// One line whose characters control no terminal: names of plugins, devices and files are others' choice. C0, DEL and C1
// (C2 80 to C2 9F in UTF-8) become \xNN, byte by byte.
std::string onOneLine(const std::string& sentence) {
  std::string line;
  for (size_t at = 0; at < sentence.size(); ++at) {
    const auto byte = static_cast<unsigned char>(sentence[at]);
    const bool isSecond = at > 0 && sentence[at - 1] == '\xc2' && byte >= 0x80 && byte < 0xa0;
    const auto next = at + 1 < sentence.size() ? static_cast<unsigned char>(sentence[at + 1]) : 0;
    const bool isFirst = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (byte < 0x20 || byte == 0x7f || isFirst || isSecond) {
      line += formatSentence("\\x%02x", byte);
    } else {
      line += sentence[at];
    }
  }
  return line;
}

}  // namespace

void tellInfo(const std::string& sentence) {
  if (!wantsInfo()) return;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string line =
      formatSentence("%s:%d:%d NCCL INFO %s\n", host, getpid(), gettid(), onOneLine(sentence).c_str());
  // In one piece, between those of other threads; who reads no stderr misses it.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace ncclrun
