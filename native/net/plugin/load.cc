#include "net/plugin/load.h"

#include <strings.h>

#include <map>
#include <mutex>

#include "base/debug.h"
#include "base/variables.h"
#include "net/plugin/backend.h"
#include "net/plugin/library.h"
#include "net/plugin/unused_plugins.h"

namespace ncclrun::net::plugin {
namespace {

constexpr const char* kDefaultLibrary = "libnccl-net.so";
constexpr TableName kNetTables{"ncclNetPlugin", abi::kOldest, abi::kNewest};
constexpr const char* kRemedy = "Correct NCCL_NET_PLUGIN, or set it to none to use no plugin";

// All plugins of this process, by dlopen()'s handle: two words may mean one library.
struct Opened {
  std::mutex mutex;
  std::map<void*, std::unique_ptr<Plugin>> plugins;
};
Opened& opened() {
  static auto& only = *new Opened;  // never destroyed: plugins stay loaded
  return only;
}

bool hasName(const Plugin& plugin, const std::string& name) {
  return name.empty() || strcasecmp(plugin.name().c_str(), name.c_str()) == 0;
}

// The library that nobody asked for is missing on most hosts. One that is there and cannot be opened is another matter.
bool isMissing(const Status& status) {
  return status.sentence.find(std::string(kDefaultLibrary) + ": cannot open shared object file") != std::string::npos;
}

// Null with success: another one must be tried; out.reasons says why.
Status tryPlugin(const std::string& word, const Wish& wish, uint64_t communicatorId, Selection& out) {
  Plugin* plugin = nullptr;
  if (Status status = openPlugin(word, plugin); !status.ok()) return status;
  out.names.push_back(plugin->name());
  if (!hasName(*plugin, wish.network)) {
    out.reasons.push_back(formatSentence("%s is not the network that NCCL_NET=%s asks for", plugin->label().c_str(),
                                         wish.network.c_str()));
    return {};
  }
  const Status status = makeNetwork(*plugin, communicatorId, out.network);
  if (!status.ok()) out.reasons.push_back(status.sentence);
  return {};
}

}  // namespace

Wish wishOfVariables() {
  Wish wish;
  const char* const libraries = ncclVariable("NCCL_NET_PLUGIN");
  if (libraries != nullptr && *libraries != '\0') wish.libraries = libraries;
  const char* const network = ncclVariable("NCCL_NET");
  if (network != nullptr) wish.network = network;
  return wish;
}

Status openPlugin(const std::string& word, Plugin*& out) {
  std::lock_guard lock(opened().mutex);
  std::string why;
  void* const library = openLibrary(word, "net", why);
  if (library == nullptr) return {ncclSystemError, why};
  auto& plugin = opened().plugins[library];
  if (plugin == nullptr) {
    const ExportedTable exported = newestTable(library, kNetTables);
    auto calls = adapt(exported.version, exported.table);
    if (calls == nullptr) return {ncclSystemError, word + ": " + noTable(library, kNetTables)};
    if (const std::string missing = calls->missing(); !missing.empty())
      return {ncclSystemError,
              formatSentence("%s: its table of version %d has no %s", word.c_str(), calls->version(), missing.c_str())};
    plugin = std::make_unique<Plugin>(word, library, std::move(calls));
    logInfo(formatSentence("%s, version %d of the interface", plugin->label().c_str(), plugin->calls().version()),
            Subsystem::net);
    reportExportedPlugins(plugin->label(), library);
  }
  out = plugin.get();
  return {};
}

Status select(const Wish& wish, uint64_t communicatorId, Selection& out) {
  out = {};
  Status refused;  // the first library that was asked for and cannot be used
  const bool isAsked = wish.libraries.has_value();
  for (const std::string& word : isAsked ? wordsOf(*wish.libraries) : std::vector<std::string>{kDefaultLibrary}) {
    const Status status = tryPlugin(word, wish, communicatorId, out);
    if (out.network != nullptr) break;
    if (status.ok() || (!isAsked && isMissing(status))) continue;
    out.reasons.push_back(status.sentence);
    if (isAsked && refused.ok())
      refused = {status.code, formatSentence("NCCL_NET_PLUGIN=%s: %s. %s", wish.libraries->c_str(),
                                             status.sentence.c_str(), kRemedy)};
  }
  for (const std::string& reason : out.reasons) logInfo("passed over: " + reason, Subsystem::net);
  return out.network == nullptr ? refused : Status();
}

}  // namespace ncclrun::net::plugin
