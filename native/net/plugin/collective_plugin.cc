#include "net/plugin/collective_plugin.h"

#include "base/debug.h"
#include "net/plugin/library.h"

namespace ncclrun::net::plugin {
namespace {

constexpr TableName kTables{"ncclCollNetPlugin", abi::kOldest, abi::kNewest};

}  // namespace

CollectivePlugin::CollectivePlugin(std::string library, std::unique_ptr<CollectiveCalls> calls)
    : LoadedPlugin("collective network plugin", std::move(library), *calls), calls_(std::move(calls)) {}

Status findCollectivePlugin(const std::string& library, void* handle, std::unique_ptr<CollectivePlugin>& out) {
  const ExportedTable exported = newestTable(handle, kTables);
  if (exported.table == nullptr) {
    const std::string others = versionsOf(handle, kTables);
    if (others.empty()) return {};
    return {ncclInvalidUsage,
            formatSentence("%s: no collective network: %s", library.c_str(), noTable(handle, kTables).c_str())};
  }
  auto calls = adaptCollective(exported.version, exported.table);
  if (const std::string missing = calls->missingAtStart(); !missing.empty())
    return {ncclInternalError, formatSentence("%s: no collective network: its table of version %d has no %s",
                                              library.c_str(), calls->version(), missing.c_str())};
  out = std::make_unique<CollectivePlugin>(library, std::move(calls));
  logInfo(formatSentence("%s, version %d of the interface", out->label().c_str(), out->calls().version()),
          Subsystem::net);
  return {};
}

}  // namespace ncclrun::net::plugin
