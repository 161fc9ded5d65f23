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

}  // namespace

void tellInfo(const std::string& sentence) {
  if (!wantsInfo()) return;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string line = formatSentence("%s:%d:%d NCCL INFO %s\n", host, getpid(), gettid(), sentence.c_str());
  // In one piece, between those of other threads; who reads no stderr misses it.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace ncclrun
