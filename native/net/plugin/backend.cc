#include "net/plugin/backend.h"

#include "base/debug.h"
#include "net/plugin/collective_backend.h"
#include "net/plugin/establish.h"

namespace ncclrun::net::plugin {
namespace {

class PluginNetwork final : public Network {
 public:
  PluginNetwork(Plugin& plugin, uint64_t communicatorId, void* context, uint64_t timeout)
      : communicatorId_(communicatorId), use_{plugin, context, timeout} {}
  ~PluginNetwork() override {
    if (use_.inside->load() == 0) {
      use_.plugin.end(use_.context);
    } else {
      logWarning(use_.plugin.label() + " does not return from connect or accept: its context is not finalized");
    }
  }

  const std::string& name() const override { return use_.plugin.name(); }
  std::span<const Device> devices() const override { return use_.plugin.devices(); }
  bool threadBound() const override { return true; }
  bool deliversAfterClose() const override { return false; }  // NCCL's ranks wait for each other before they close

  Status listen(uint32_t device, Handle& handle, std::unique_ptr<Listener>& out) override {
    return makeListener(use_, device, handle, out);
  }
  Status connect(uint32_t device, const Handle& handle, std::unique_ptr<Connector>& out) override {
    return makeConnector(use_, device, handle, out);
  }

  Status makeCollective(std::unique_ptr<CollectiveNetwork>& out) override {
    out = nullptr;
    CollectivePlugin* const collective = use_.plugin.collective();
    return collective == nullptr ? Status() : makeCollectiveNetwork(*collective, communicatorId_, out, use_.timeout);
  }

 private:
  const uint64_t communicatorId_;
  const Use use_;
};

}  // namespace

Status makeNetwork(Plugin& plugin, uint64_t communicatorId, std::unique_ptr<Network>& out, uint64_t timeout) {
  void* context = nullptr;
  if (Status status = plugin.begin(communicatorId, context); !status.ok()) return status;
  plugin.collective();  // names it in the log
  out = std::make_unique<PluginNetwork>(plugin, communicatorId, context, timeout);
  return {};
}

}  // namespace ncclrun::net::plugin
