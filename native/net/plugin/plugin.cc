#include "net/plugin/plugin.h"

#include "base/debug.h"
#include "net/plugin/collective_plugin.h"

namespace ncclrun::net::plugin {
namespace {

constexpr int kBlocksUpTo = 6;
constexpr uint64_t kLongCall = 50'000'000;  // ns

}  // namespace

Plugin::Plugin(std::string library, void* handle, std::unique_ptr<Calls> calls)
    : LoadedPlugin("network plugin", std::move(library), *calls),
      handle_(handle),
      calls_(std::move(calls)),
      blocks_(calls_->version() <= kBlocksUpTo) {}

Plugin::~Plugin() = default;

CollectivePlugin* Plugin::collective() {
  std::call_once(collectiveSought_, [this] {
    const Status status = findCollectivePlugin(library(), handle_, collective_);
    if (!status.ok()) logInfo(status.sentence, Subsystem::net);
  });
  return collective_.get();
}

void Plugin::noteCallTook(uint64_t nanoseconds) {
  if (nanoseconds < kLongCall || blocks_.exchange(true)) return;
  logInfo(formatSentence("%s blocks for %u ms in connect or accept: from now on threads of their own make these calls",
                         label().c_str(), unsigned(nanoseconds / 1'000'000)),
          Subsystem::net);
}

}  // namespace ncclrun::net::plugin
