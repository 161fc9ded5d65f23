#include "net/plugin/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/trusted_path.h"

namespace ncclrun::net::plugin {
namespace {

constexpr std::string_view kNoPlugin = "none";
constexpr std::string_view kProgramItself = "STATIC_PLUGIN";

// dlopen(), with the reason where it fails.
void* open(const char* path, std::string& why) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    why = reason == nullptr ? "it cannot be opened" : reason;
  }
  return library;
}

void* tableOf(void* library, const TableName& name, int version) {
  return dlsym(library, formatSentence("%s_v%d", name.symbol, version).c_str());
}

}  // namespace

void* openLibrary(const std::string& word, const char* kind, std::string& why) {
  if (word == kProgramItself) return open(nullptr, why);
  if (word.find('/') != std::string::npos) {
    const std::string path = executablePath(word, why);
    return path.empty() ? nullptr : open(path.c_str(), why);
  }
  void* const library = open(word.c_str(), why);
  if (library != nullptr || (word.starts_with("lib") && word.ends_with(".so"))) return library;
  std::string whyNotByName;
  void* const byName = open(formatSentence("libnccl-%s-%s.so", kind, word.c_str()).c_str(), whyNotByName);
  if (byName == nullptr) why += "; " + whyNotByName;
  return byName;
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

ExportedTable newestTable(void* library, const TableName& name) {
  for (int version = name.newest; version >= name.oldest; version--) {
    void* const table = tableOf(library, name, version);
    if (table != nullptr) return {version, table};
  }
  return {};
}

std::string versionsOf(void* library, const TableName& name) {
  std::string versions;
  for (int version = 1; version < name.newest + 20; version++) {
    if (tableOf(library, name, version) == nullptr) continue;
    versions += formatSentence("%s%s_v%d", versions.empty() ? "" : ", ", name.symbol, version);
  }
  return versions;
}

std::string noTable(void* library, const TableName& name) {
  const std::string others = versionsOf(library, name);
  return formatSentence("it exports none of %s_v%d to %s_v%d%s", name.symbol, name.oldest, name.symbol, name.newest,
                        others.empty() ? "" : (", only " + others).c_str());
}

}  // namespace ncclrun::net::plugin
