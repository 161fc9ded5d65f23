#include "net/plugin/load.h"

#include <dlfcn.h>
#include <strings.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

#include "base/debug.h"
#include "base/trusted_path.h"
#include "base/variables.h"
#include "net/plugin/backend.h"

namespace ncclrun::net::plugin {
namespace {

constexpr const char* kDefaultLibrary = "libnccl-net.so";
constexpr std::string_view kNoPlugin = "none";
constexpr std::string_view kProgramItself = "STATIC_PLUGIN";
constexpr const char* kRemedy = "Correct NCCL_NET_PLUGIN, or set it to none to use no plugin";

// dlopen(), with the reason where it fails.
void* open(const char* path, std::string& why) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    why = reason == nullptr ? "it cannot be opened" : reason;
  }
  return library;
}

void* openLibrary(const std::string& word, std::string& why) {
  if (word == kProgramItself) return open(nullptr, why);
  if (word.find('/') != std::string::npos) {
    const std::string path = executablePath(word, why);
    return path.empty() ? nullptr : open(path.c_str(), why);
  }
  void* const library = open(word.c_str(), why);
  if (library != nullptr || (word.starts_with("lib") && word.ends_with(".so"))) return library;
  std::string whyNotByName;
  void* const byName = open(("libnccl-net-" + word + ".so").c_str(), whyNotByName);
  if (byName == nullptr) why += "; " + whyNotByName;
  return byName;
}

std::unique_ptr<Calls> newestCalls(void* library) {
  for (int version = abi::kNewest; version >= abi::kOldest; version--) {
    void* const table = dlsym(library, formatSentence("ncclNetPlugin_v%d", version).c_str());
    if (table != nullptr) return adapt(version, table);
  }
  return nullptr;
}

// Names the versions that are there, since none of ours is.
std::string noVersion(void* library) {
  std::string others;
  for (int version = 2; version < abi::kNewest + 20; version++) {
    const std::string symbol = formatSentence("ncclNetPlugin_v%d", version);
    if (dlsym(library, symbol.c_str()) != nullptr) others += (others.empty() ? "" : ", ") + symbol;
  }
  return formatSentence("it exports none of ncclNetPlugin_v%d to ncclNetPlugin_v%d%s", abi::kOldest, abi::kNewest,
                        others.empty() ? "" : (", only " + others).c_str());
}

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

std::vector<std::string> wordsOf(const std::string& list) {
  std::vector<std::string> words;
  for (size_t start = 0; start <= list.size();) {
    const size_t comma = std::min(list.find(',', start), list.size());
    const std::string word = list.substr(start, comma - start);
    if (word == kNoPlugin) break;
    if (!word.empty()) words.push_back(word);
    start = comma + 1;
  }
  return words;
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
  void* const library = openLibrary(word, why);
  if (library == nullptr) return {ncclSystemError, why};
  auto& plugin = opened().plugins[library];
  if (plugin == nullptr) {
    auto calls = newestCalls(library);
    if (calls == nullptr) return {ncclSystemError, word + ": " + noVersion(library)};
    if (const std::string missing = calls->missing(); !missing.empty())
      return {ncclSystemError,
              formatSentence("%s: its table of version %d has no %s", word.c_str(), calls->version(), missing.c_str())};
    plugin = std::make_unique<Plugin>(word, std::move(calls));
    logInfo(formatSentence("%s, version %d of the interface", plugin->label().c_str(), plugin->calls().version()),
            Subsystem::net);
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
