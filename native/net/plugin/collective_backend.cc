#include "net/plugin/collective_backend.h"

#include <climits>
#include <vector>

#include "base/debug.h"
#include "net/plugin/attempt.h"
#include "net/plugin/collective_group.h"
#include "net/plugin/listen_comm.h"

namespace ncclrun::net::plugin {
namespace {

// A call that has returned success and no group.
constexpr int kNothingMade = -1;

// What the groups of one communicator have in common.
struct CollectiveUse {
  CollectivePlugin& plugin;
  void* context = nullptr;
  uint64_t timeout = 0;  // ns
  const ReducibleTypes types{plugin};
  const std::shared_ptr<std::atomic<int>> inside = std::make_shared<std::atomic<int>>(0);
};

// What connect() of a member needs as long as it lasts.
struct Join {
  Join(std::span<const Handle> all, std::shared_ptr<ListenComm> comm)
      : handles(all.size()), addresses(all.size()), listener(std::move(comm)) {
    for (size_t i = 0; i < all.size(); i++) {
      handles[i].bytes = all[i];
      addresses[i] = handles[i].bytes.data();
    }
  }
  std::vector<PrivateHandle> handles;
  std::vector<void*> addresses;
  std::shared_ptr<ListenComm> listener;
};

class PluginCollectiveListener final : public CollectiveListener {
 public:
  PluginCollectiveListener(const CollectiveUse& use, uint32_t device, std::shared_ptr<ListenComm> comm)
      : use_(use), device_(device), comm_(std::move(comm)) {}

  Status connect(std::span<const Handle> handles, uint32_t rank, std::unique_ptr<CollectiveGroup>& out) override {
    if (attempt_ == nullptr) {
      if (Status status = start(handles, rank); !status.ok()) return status;
    }
    bool isOver = false;
    Yield yield;
    if (Status status = attempt_->poll(isOver, yield); !status.ok() || !isOver) return status;
    if (yield.code == kNothingMade)
      return {ncclInternalError, formatSentence("%s: connect made no group", use_.plugin.label().c_str())};
    if (yield.code != ncclSuccess) return use_.plugin.failure("connect", yield.code);
    out = makeGroup(use_.plugin, use_.types, use_.plugin.devices()[device_], yield.comm);
    return {};
  }

 private:
  Status start(std::span<const Handle> handles, uint32_t rank) {
    if (rank >= handles.size() || handles.size() > INT_MAX)
      return {ncclInvalidArgument,
              formatSentence("%s: a group of %zu has no member %u", use_.plugin.label().c_str(), handles.size(), rank)};
    auto join = std::make_shared<Join>(handles, comm_);
    const auto call = [&plugin = use_.plugin, rank, join] {
      Yield made;
      made.code = plugin.calls().connect(join->addresses.data(), int(join->addresses.size()), int(rank),
                                         join->listener->get(), &made.comm);
      if (made.code == ncclSuccess && made.comm == nullptr) made.code = kNothingMade;
      return made;
    };
    const auto close = [&plugin = use_.plugin](void* comm) { plugin.calls().closeColl(comm); };
    return Attempt::start(
        {Attempt::Kind::join, use_.plugin.label() + ": connect", use_.timeout, call, close, use_.inside}, attempt_);
  }

  const CollectiveUse& use_;
  const uint32_t device_;
  const std::shared_ptr<ListenComm> comm_;
  std::unique_ptr<Attempt> attempt_;
};

class PluginCollectiveNetwork final : public CollectiveNetwork {
 public:
  PluginCollectiveNetwork(CollectivePlugin& plugin, void* context, uint64_t timeout) : use_{plugin, context, timeout} {}
  ~PluginCollectiveNetwork() override {
    if (use_.inside->load() == 0) {
      use_.plugin.end(use_.context);
    } else {
      logWarning(use_.plugin.label() + " does not return from connect: its context is not finalized");
    }
  }

  const std::string& name() const override { return use_.plugin.name(); }
  std::span<const Device> devices() const override { return use_.plugin.devices(); }
  bool threadBound() const override { return true; }
  bool canReduce(Reduction reduction) const override { return use_.types.has(reduction); }
  bool canGather() const override { return use_.plugin.calls().hasGather(); }

  Status listen(uint32_t device, Handle& handle, std::unique_ptr<CollectiveListener>& out) override {
    std::shared_ptr<ListenComm> comm;
    if (Status status = ListenComm::make(use_.plugin, use_.context, device, handle, comm); !status.ok()) return status;
    out = std::make_unique<PluginCollectiveListener>(use_, device, std::move(comm));
    return {};
  }

 private:
  const CollectiveUse use_;
};

}  // namespace

Status makeCollectiveNetwork(CollectivePlugin& plugin, uint64_t communicatorId, std::unique_ptr<CollectiveNetwork>& out,
                             uint64_t timeout) {
  void* context = nullptr;
  if (Status status = plugin.begin(communicatorId, context); !status.ok()) return status;
  out = std::make_unique<PluginCollectiveNetwork>(plugin, context, timeout);
  return {};
}

}  // namespace ncclrun::net::plugin
