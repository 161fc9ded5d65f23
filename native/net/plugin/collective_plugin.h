// A collective network (ncclCollNet) that a network plugin's library exports.
#pragma once
#include <memory>
#include <string>

#include "net/plugin/collective_adapt.h"
#include "net/plugin/loaded_plugin.h"

namespace ncclrun::net::plugin {

class CollectivePlugin final : public LoadedPlugin {
 public:
  CollectivePlugin(std::string library, std::unique_ptr<CollectiveCalls> calls);

  CollectiveCalls& calls() { return *calls_; }

 private:
  const std::unique_ptr<CollectiveCalls> calls_;
};

// Takes the newest of the library's tables. `out` null: it exports none. An error: it exports one that cannot be used,
// or only versions that ncclrun does not have.
Status findCollectivePlugin(const std::string& library, void* handle, std::unique_ptr<CollectivePlugin>& out);

}  // namespace ncclrun::net::plugin
