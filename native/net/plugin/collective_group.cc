#include "net/plugin/collective_group.h"

#include <algorithm>
#include <climits>
#include <cstdint>

#include "base/debug.h"
#include "base/element.h"
#include "net/plugin/registration.h"

namespace ncclrun::net::plugin {

ReducibleTypes::ReducibleTypes(CollectivePlugin& plugin) {
  for (size_t type = 0; type < supported_.size(); type++) {
    for (size_t op = 0; op < kOperators; op++) {
      int supported = 0;
      // Older plugins fail for types that they do not know.
      const int code = plugin.calls().reduceSupport(int(type), int(op), &supported);
      supported_[type][op] = code == ncclSuccess && supported != 0;
    }
  }
}

bool ReducibleTypes::has(Reduction reduction) const {
  return size_t(reduction.type) < supported_.size() && size_t(reduction.op) < kOperators &&
         supported_[reduction.type][reduction.op];
}

namespace {

class PluginGroup final : public CollectiveGroup {
 public:
  PluginGroup(CollectivePlugin& plugin, const ReducibleTypes& types, const Device& device, void* comm)
      : plugin_(plugin), types_(types), device_(device), comm_(comm) {}
  ~PluginGroup() override {
    if (const int code = plugin_.calls().closeColl(comm_); code != ncclSuccess)
      logInfo(plugin_.failure("closeColl", code).sentence, Subsystem::net);
  }

  Status registerMemory(const Region& region, Registration& out) override {
    return registerWith(plugin_, device_, comm_, region, out);
  }
  Status deregisterMemory(Registration registration) override { return deregisterWith(plugin_, comm_, registration); }

  Status iallreduce(const RegisteredBuffer& send, const RegisteredBuffer& receive, size_t count, Reduction reduction,
                    Request*& out) override;
  Status iallgather(const RegisteredBuffer& send, const RegisteredBuffer& receive, const Window& window,
                    Request*& out) override;
  Status ireducescatter(const RegisteredBuffer& send, const RegisteredBuffer& receive, const Window& window,
                        Reduction reduction, Request*& out) override;
  Status iflush(const RegisteredBuffer& buffer, size_t bytes, Request*& out) override;
  Status test(Request* request, bool& done) override;

 private:
  // A request of the plugin. What the interface calls a Request is the address of one of these.
  struct Pending {
    void* request = nullptr;
    size_t bytes = 0;
    bool isFlush = false;
  };

  Status check(size_t bytes) const;
  Status checkReduction(Reduction reduction) const;
  Status checkGather() const;
  bool isFull() const { return collectives_.size() >= kMaxCollectives; }
  Status posted(const char* call, int code, Pending made, Request*& out);
  Status dead(Status status) { return dead_ = std::move(status); }
  std::deque<Pending>& orderOf(bool isFlush) { return isFlush ? flushes_ : collectives_; }

  CollectivePlugin& plugin_;
  const ReducibleTypes& types_;
  const Device& device_;
  void* const comm_;
  Status dead_;                                // an error: nothing but closing is allowed afterwards
  std::deque<Pending> collectives_, flushes_;  // in the order in which they were begun; elements stay where they are
};

Status PluginGroup::check(size_t bytes) const {
  if (!dead_.ok()) return dead_;
  if (bytes > 0 && bytes <= device_.maxCollectiveBytes) return {};
  return {ncclInvalidArgument,
          formatSentence("%s: a collective on device %s has 1 to %llu bytes, not %zu", plugin_.label().c_str(),
                         device_.name.c_str(), static_cast<unsigned long long>(device_.maxCollectiveBytes), bytes)};
}

Status PluginGroup::checkReduction(Reduction reduction) const {
  if (types_.has(reduction)) return {};
  return {ncclInvalidUsage, formatSentence("%s does not reduce type %d by operator %d", plugin_.label().c_str(),
                                           int(reduction.type), int(reduction.op))};
}

Status PluginGroup::checkGather() const {
  if (plugin_.calls().hasGather()) return {};
  return {ncclInvalidUsage, formatSentence("%s, version %d of the interface, neither gathers nor scatters",
                                           plugin_.label().c_str(), plugin_.calls().version())};
}

Status PluginGroup::posted(const char* call, int code, Pending made, Request*& out) {
  if (code != ncclSuccess) return dead(plugin_.failure(call, code));
  if (made.request == nullptr) return {};
  out = reinterpret_cast<Request*>(&orderOf(made.isFlush).emplace_back(made));
  return {};
}

Status PluginGroup::iallreduce(const RegisteredBuffer& send, const RegisteredBuffer& receive, size_t count,
                               Reduction reduction, Request*& out) {
  out = nullptr;
  if (Status status = checkReduction(reduction); !status.ok()) return status;
  const size_t size = elementBytes(reduction.type);
  Pending made{.bytes = count > SIZE_MAX / size ? SIZE_MAX : count * size};
  if (Status status = check(made.bytes); !status.ok() || isFull()) return status;
  const int code =
      plugin_.calls().iallreduce(comm_, send.address, receive.address, count, int(reduction.type), int(reduction.op),
                                 send.registration.opaque, receive.registration.opaque, &made.request);
  return posted("iallreduce", code, made, out);
}

Status PluginGroup::iallgather(const RegisteredBuffer& send, const RegisteredBuffer& receive, const Window& window,
                               Request*& out) {
  out = nullptr;
  if (Status status = checkGather(); !status.ok()) return status;
  if (Status status = check(window.bytes); !status.ok() || isFull()) return status;
  Pending made{.bytes = window.bytes};
  const NewestPart part{receive.registration.opaque, receive.address, window.bytes};
  const int code =
      plugin_.calls().iallgather(comm_, send.address, part, {window.bytesPerRank, window.offset, window.bytes},
                                 send.registration.opaque, &made.request);
  return posted("iallgather", code, made, out);
}

Status PluginGroup::ireducescatter(const RegisteredBuffer& send, const RegisteredBuffer& receive, const Window& window,
                                   Reduction reduction, Request*& out) {
  out = nullptr;
  if (Status status = checkGather(); !status.ok()) return status;
  if (Status status = checkReduction(reduction); !status.ok()) return status;
  if (Status status = check(window.bytes); !status.ok() || isFull()) return status;
  Pending made{.bytes = window.bytes};
  const NewestPart part{send.registration.opaque, send.address, window.bytes};
  const int code = plugin_.calls().ireducescatter(
      comm_, part, receive.address, {window.bytesPerRank, window.offset, window.bytes}, int(reduction.type),
      int(reduction.op), receive.registration.opaque, &made.request);
  return posted("ireducescatter", code, made, out);
}

Status PluginGroup::iflush(const RegisteredBuffer& buffer, size_t bytes, Request*& out) {
  out = nullptr;
  if (!dead_.ok()) return dead_;
  // Plugins without GPU memory answer with an error.
  if (bytes == 0 || !device_.deviceMemory) return {};
  Pending made{.bytes = bytes, .isFlush = true};
  const int code = plugin_.calls().iflush(comm_, buffer.address, int(std::min<size_t>(bytes, INT_MAX)),
                                          buffer.registration.opaque, &made.request);
  return posted("iflush", code, made, out);
}

Status PluginGroup::test(Request* request, bool& done) {
  done = false;
  if (!dead_.ok()) return dead_;
  auto* const pending = reinterpret_cast<Pending*>(request);
  auto& order = orderOf(pending->isFlush);
  if (order.empty() || &order.front() != pending) return {};
  // Some plugins write the size without looking whether it is wanted, others never write it.
  const int expected = int(std::min<size_t>(pending->bytes, INT_MAX));
  int isDone = 0, bytes = expected;
  if (const int code = plugin_.calls().test(pending->request, &isDone, &bytes); code != ncclSuccess)
    return dead(plugin_.failure("test", code));
  if (isDone == 0) return {};
  const bool isFlush = pending->isFlush;
  order.pop_front();
  if (!isFlush && (bytes < 0 || bytes > expected))
    return dead({ncclInternalError, formatSentence("%s: test reports %d bytes of a collective of %d",
                                                   plugin_.label().c_str(), bytes, expected)});
  done = true;
  return {};
}

}  // namespace

std::unique_ptr<CollectiveGroup> makeGroup(CollectivePlugin& plugin, const ReducibleTypes& types, const Device& device,
                                           void* comm) {
  return std::make_unique<PluginGroup>(plugin, types, device, comm);
}

}  // namespace ncclrun::net::plugin
