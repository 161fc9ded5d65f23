#include "net/plugin/unused_plugins.h"

#include <mutex>

#include "base/debug.h"
#include "base/error.h"
#include "base/variables.h"
#include "net/plugin/library.h"

namespace ncclrun::net::plugin {
namespace {

struct Kind {
  const char* name;  // as in libnccl-NAME.so
  const char* variable;
  TableName tables;
  const char* instead;
};
constexpr Kind kKinds[] = {
    {"tuner",
     "NCCL_TUNER_PLUGIN",
     {"ncclTunerPlugin", 2, 6},
     "ncclrun calls no tuner: its planner chooses algorithms, protocols and channels, and 'ncclrun tune' measures "
     "them"},
    {"profiler",
     "NCCL_PROFILER_PLUGIN",
     {"ncclProfiler", 1, 6},
     "ncclrun calls no profiler: NCCL_DEBUG=INFO logs what it chooses, and 'ncclrun perf' measures it"},
};

// What stands behind one word of the variable.
std::string findingOf(const Kind& kind, const std::string& word) {
  std::string why;
  void* const library = openLibrary(word, kind.name, why);
  if (library == nullptr) return why;
  const std::string versions = versionsOf(library, kind.tables);
  return word + (versions.empty() ? ": " + noTable(library, kind.tables) : " exports " + versions);
}

void reportWished(const Kind& kind) {
  const char* const wish = ncclVariable(kind.variable);
  if (wish == nullptr) return;
  for (const std::string& word : wordsOf(wish)) {
    logWarning(formatSentence("%s=%s: %s. %s. Unset %s, or set it to none", kind.variable, wish,
                              findingOf(kind, word).c_str(), kind.instead, kind.variable));
  }
}

}  // namespace

void reportWishedPlugins() {
  static std::once_flag reported;
  std::call_once(reported, [] {
    if (!debugs(DebugLevel::warn)) return;
    for (const Kind& kind : kKinds) reportWished(kind);
  });
}

void reportExportedPlugins(const std::string& label, void* handle) {
  if (!debugs(DebugLevel::info)) return;
  for (const Kind& kind : kKinds) {
    const std::string versions = versionsOf(handle, kind.tables);
    if (!versions.empty())
      logInfo(formatSentence("%s exports %s, too: %s", label.c_str(), versions.c_str(), kind.instead), Subsystem::net);
  }
}

}  // namespace ncclrun::net::plugin
