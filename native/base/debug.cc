#include "base/debug.h"

#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/error.h"
#include "base/variables.h"
#include "base/version.h"
#include "nccl.h"

namespace ncclrun {
namespace {

struct Named {
  const char* name;
  DebugLevel level;
};
constexpr Named kLevels[] = {{"VERSION", DebugLevel::version},
                             {"WARN", DebugLevel::warn},
                             {"INFO", DebugLevel::info},
                             {"ABORT", DebugLevel::abort},
                             {"TRACE", DebugLevel::trace}};

// In the order of Subsystem. The others that NCCL has say nothing here.
constexpr const char* kSubsystems[] = {"INIT", "COLL",  "P2P",  "SHM",   "NET",       "GRAPH", "TUNING",
                                       "ENV",  "ALLOC", "CALL", "PROXY", "BOOTSTRAP", "REG",   "DESTROY"};
constexpr const char* kOtherSubsystems[] = {"ALLOC_HOST", "NVLS", "PROFILE", "RAS"};
constexpr uint32_t kAll = ~0u;

struct Settings {
  DebugLevel level = DebugLevel::none;
  uint32_t subsystems = kAll;  // bits by Subsystem
  int file = STDERR_FILENO;
  std::string note;  // what of the variables means nothing
  const Settings* previous = nullptr;
};

DebugLevel readLevel() {
  const char* const text = ncclVariable("NCCL_DEBUG");
  for (const auto& [name, level] : kLevels) {
    if (text != nullptr && strcasecmp(text, name) == 0) return level;
  }
  return DebugLevel::none;
}

bool isOneOf(const auto& names, const std::string& word) {
  for (const char* const name : names) {
    if (strcasecmp(name, word.c_str()) == 0) return true;
  }
  return false;
}

// "INIT,COLL"; "^INIT": all but these.
uint32_t readSubsystems(std::string& note) {
  const char* const text = ncclVariable("NCCL_DEBUG_SUBSYS");
  if (text == nullptr || *text == '\0') return kAll;
  std::string_view rest = text;
  const bool isInverted = rest.starts_with('^');
  if (isInverted) rest.remove_prefix(1);
  uint32_t chosen = 0;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string word(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (strcasecmp(word.c_str(), "ALL") == 0) chosen = kAll;
    if (!isOneOf(kSubsystems, word) && !isOneOf(kOtherSubsystems, word) && strcasecmp(word.c_str(), "ALL") != 0)
      note = formatSentence("NCCL_DEBUG_SUBSYS=%s: there is no subsystem %s", text, word.c_str());
    for (size_t i = 0; i < std::size(kSubsystems); i++) {
      if (strcasecmp(kSubsystems[i], word.c_str()) == 0) chosen |= 1u << i;
    }
  }
  return isInverted ? ~chosen : chosen;
}

std::string hostName() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

// A host's name is no directory.
std::string expanded(const char* pattern) {
  std::string host = hostName();
  for (char& letter : host) {
    if (letter == '/' || letter == '%') letter = '-';
  }
  std::string path;
  for (const char* at = pattern; *at != '\0'; at++) {
    if (*at != '%' || at[1] == '\0') {
      path += *at;
      continue;
    }
    switch (*++at) {
      case 'h':
        path += host;
        break;
      case 'p':
        path += std::to_string(getpid());
        break;
      case '%':
        path += '%';
        break;
      default:
        path += {'%', *at};
    }
  }
  return path;
}

int openFile(DebugLevel level, std::string& note) {
  const char* const pattern = ncclVariable("NCCL_DEBUG_FILE");
  if (pattern == nullptr || *pattern == '\0' || level <= DebugLevel::version) return STDERR_FILENO;
  const std::string path = expanded(pattern);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (file >= 0) return file;
  note = formatSentence("NCCL_DEBUG_FILE=%s: cannot write to %s: %s", pattern, path.c_str(), std::strerror(errno));
  return STDERR_FILENO;
}

std::atomic<const Settings*> current{nullptr};
std::atomic<const Settings*> newest{nullptr};  // also after resetDebug

// Read once, again after resetDebug, and never freed: other threads may be writing a line.
const Settings& settings() {
  if (const Settings* const known = current.load(std::memory_order_acquire); known != nullptr) return *known;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (const Settings* const known = current.load(std::memory_order_acquire); known != nullptr) return *known;
  auto* const made = new Settings;
  made->previous = newest.exchange(made, std::memory_order_relaxed);
  made->level = readLevel();
  made->subsystems = readSubsystems(made->note);
  made->file = openFile(made->level, made->note);
  current.store(made, std::memory_order_release);
  return *made;
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

void writeLine(const char* level, const std::string& sentence) {
  const std::string line = formatSentence("%s:%d:%d NCCL %s %s\n", hostName().c_str(), getpid(), gettid(), level,
                                          onOneLine(sentence).c_str());
  // In one piece, between those of other threads; who reads no stderr misses it.
  [[maybe_unused]] const ssize_t written = ::write(settings().file, line.data(), line.size());
}

}  // namespace

bool debugs(DebugLevel level) { return settings().level >= level; }

void logWarning(const std::string& sentence) {
  if (!debugs(DebugLevel::warn) || sentence.empty()) return;
  static std::mutex mutex;
  static auto& last = *new std::string;  // of any thread: a failure is logged where it happens and where it is queried
  {
    std::lock_guard lock(mutex);
    if (last == sentence) return;
    last = sentence;
  }
  writeLine("WARN", sentence);
}

void logInfo(const std::string& sentence, Subsystem about) {
  if (debugs(DebugLevel::info) && (settings().subsystems >> uint8_t(about) & 1) != 0) writeLine("INFO", sentence);
}

void traceCall(const std::string& call) {
  if (debugs(DebugLevel::trace)) writeLine("CALL", call);
}

void logStartup(bool isFirstRank) {
  constexpr std::string_view kUniqueId = "NCCLRUN_UNIQUE_ID";
  static std::atomic<bool> done{false};
  if (!debugs(DebugLevel::version) || done.exchange(true)) return;
  if (isFirstRank) {
    const std::string version =
        formatSentence("NCCL version %d.%d.%d (ncclrun %s)\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, engineVersion());
    [[maybe_unused]] const ssize_t written = ::write(settings().file, version.data(), version.size());
  }
  if (!settings().note.empty()) logWarning(settings().note);
  for (const std::string& note : ncclConfigurationNotes()) logWarning(note);
  if (!debugs(DebugLevel::info)) return;
  for (const auto& [name, value, source] : ncclVariables()) {
    if (name == kUniqueId) continue;  // who reads the log need not know it
    logInfo(formatSentence("%s=%s, as %s says", name.c_str(), value.c_str(), source.c_str()), Subsystem::env);
  }
}

void resetDebug() { current.store(nullptr, std::memory_order_release); }

}  // namespace ncclrun
