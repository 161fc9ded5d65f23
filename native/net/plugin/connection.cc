#include "net/plugin/connection.h"

#include <algorithm>
#include <climits>

#include "base/debug.h"
#include "nccl.h"
#include "net/plugin/registration.h"

namespace ncclrun::net::plugin {
namespace {

// How many requests a connection may have under way. Plugins do not answer "not now" beyond, they fail.
constexpr size_t kMaxRequests = 32;
constexpr size_t kMaxRequestsBefore8 = 8;

size_t limitOf(const Calls& calls, const Device& device, bool sends) {
  const size_t groups = calls.version() >= 8 ? kMaxRequests : kMaxRequestsBefore8;
  return sends ? groups * device.maxReceives : groups;
}

// The arrays that a plugin wants instead of a group of buffers.
struct Arrays {
  explicit Arrays(std::span<const Buffer> group) {
    for (size_t i = 0; i < group.size(); i++) {
      addresses[i] = group[i].address;
      bytes[i] = group[i].bytes;
      intBytes[i] = int(std::min<size_t>(group[i].bytes, INT_MAX));
      tags[i] = group[i].tag;
      registrations[i] = group[i].registration.opaque;
    }
  }
  void* addresses[kMaxReceives] = {};
  size_t bytes[kMaxReceives] = {};
  int intBytes[kMaxReceives] = {};
  int tags[kMaxReceives] = {};
  void* registrations[kMaxReceives] = {};
};

}  // namespace

Comm::Comm(Plugin& plugin, const Device& device, void* comm, bool sends)
    : plugin_(plugin), device_(device), comm_(comm), sends_(sends) {}

Comm::~Comm() {
  const int code = sends_ ? plugin_.calls().closeSend(comm_) : plugin_.calls().closeRecv(comm_);
  if (code == ncclSuccess) return;
  logInfo(plugin_.failure(sends_ ? "closeSend" : "closeRecv", code).sentence, Subsystem::net);
}

Status Comm::registerMemory(const Region& region, Registration& out) {
  return registerWith(plugin_, device_, comm_, region, out);
}

Status Comm::deregisterMemory(Registration registration) { return deregisterWith(plugin_, comm_, registration); }

Comm::Pending& Comm::take() {
  if (unused_.empty()) unused_.push_back(&all_.emplace_back());
  Pending* const pending = unused_.back();
  unused_.pop_back();
  *pending = {};
  return *pending;
}

bool Comm::isFull() const { return transfers_.size() >= limitOf(plugin_.calls(), device_, sends_); }

Status Comm::dead(Status status) {
  dead_ = refused_ = status;
  return status;
}

Status Comm::posted(const char* call, int code, Pending& pending, Request*& out) {
  if (code != ncclSuccess || pending.request == nullptr) unused_.push_back(&pending);
  if (code != ncclSuccess) return refused_ = plugin_.failure(call, code);
  if (pending.request == nullptr) return {};
  orderOf(pending).push_back(&pending);
  out = reinterpret_cast<Request*>(&pending);
  return {};
}

Status Comm::isend(const void* data, size_t bytes, int tag, Registration registration, Request*& out) {
  out = nullptr;
  if (!refused_.ok()) return refused_;
  if (bytes > device_.maxMessageBytes)
    return {ncclInvalidArgument,
            formatSentence("%s: device %s sends messages of at most %llu bytes, not %zu", plugin_.label().c_str(),
                           device_.name.c_str(), static_cast<unsigned long long>(device_.maxMessageBytes), bytes)};
  if (isFull()) return {};
  Pending& pending = take();
  pending.count = 1;
  pending.capacities[0] = bytes;
  const int code =
      plugin_.calls().isend(comm_, const_cast<void*>(data), bytes, tag, registration.opaque, &pending.request);
  return posted("isend", code, pending, out);
}

Status Comm::irecv(std::span<const Buffer> group, Request*& out) {
  out = nullptr;
  if (!refused_.ok()) return refused_;
  if (group.empty() || group.size() > device_.maxReceives)
    return {ncclInvalidArgument,
            formatSentence("%s: device %s receives into 1 to %u buffers at once, not %zu", plugin_.label().c_str(),
                           device_.name.c_str(), device_.maxReceives, group.size())};
  if (isFull()) return {};
  Pending& pending = take();
  Arrays arrays(group);
  pending.count = int(group.size());
  std::copy_n(arrays.bytes, group.size(), pending.capacities.begin());
  const int code = plugin_.calls().irecv(comm_, pending.count, arrays.addresses, arrays.bytes, arrays.tags,
                                         arrays.registrations, &pending.request);
  return posted("irecv", code, pending, out);
}

Status Comm::iflush(std::span<const Buffer> group, Request*& out) {
  out = nullptr;
  if (!refused_.ok()) return refused_;
  const bool isEmpty = std::all_of(group.begin(), group.end(), [](const Buffer& one) { return one.bytes == 0; });
  // Plugins without GPU memory answer with an error.
  if (isEmpty || !device_.deviceMemory) return {};
  if (group.size() > device_.maxReceives)
    return {ncclInvalidArgument,
            formatSentence("%s: device %s flushes 1 to %u buffers at once, not %zu", plugin_.label().c_str(),
                           device_.name.c_str(), device_.maxReceives, group.size())};
  Pending& pending = take();
  Arrays arrays(group);
  pending.count = int(group.size());
  pending.isFlush = true;
  const int code = plugin_.calls().iflush(comm_, pending.count, arrays.addresses, arrays.intBytes, arrays.registrations,
                                          &pending.request);
  return posted("iflush", code, pending, out);
}

// Plugins that report no sizes leave the capacities that they were given.
Status Comm::completed(const Pending& pending, std::span<const int> reported, std::span<size_t> sizes) {
  for (size_t i = 0; i < size_t(pending.count); i++) {
    const size_t capacity = pending.capacities[i];
    if (sends_ || pending.isFlush) {
      if (i < sizes.size()) sizes[i] = capacity;
      continue;
    }
    if (reported[i] < 0 || size_t(reported[i]) > capacity)
      return dead({ncclInternalError, formatSentence("%s: test reports %d bytes in a buffer of %zu",
                                                     plugin_.label().c_str(), reported[i], capacity)});
    if (i < sizes.size()) sizes[i] = size_t(reported[i]);
  }
  return {};
}

Status Comm::test(Request* request, bool& done, std::span<size_t> sizes) {
  done = false;
  if (!dead_.ok()) return dead_;
  auto* const pending = reinterpret_cast<Pending*>(request);
  auto& order = orderOf(*pending);
  // Some plugins fail when a request is tested before an older one is complete.
  if (order.empty() || order.front() != pending) return {};
  int isDone = 0;
  int reported[kMaxReceives] = {};
  for (int i = 0; i < pending->count; i++) reported[i] = int(std::min<size_t>(pending->capacities[i], INT_MAX));
  const int code = plugin_.calls().test(pending->request, &isDone, pending->isFlush ? nullptr : reported);
  if (code != ncclSuccess) return dead(plugin_.failure("test", code));
  if (isDone == 0) return {};
  done = true;
  order.pop_front();
  Status status = completed(*pending, reported, sizes);
  unused_.push_back(pending);
  return status;
}

namespace {

// Sender and Receiver have these three calls in common.
template <typename Side>
class Shared : public Side {
 public:
  Shared(Plugin& plugin, const Device& device, void* comm, bool sends) : comm_(plugin, device, comm, sends) {}
  Status registerMemory(const Region& region, Registration& out) override { return comm_.registerMemory(region, out); }
  Status deregisterMemory(Registration registration) override { return comm_.deregisterMemory(registration); }
  Status test(Request* request, bool& done, std::span<size_t> sizes) override {
    return comm_.test(request, done, sizes);
  }

 protected:
  Comm comm_;
};

class PluginSender final : public Shared<Sender> {
 public:
  using Shared::Shared;
  Status isend(const void* data, size_t bytes, int tag, Registration registration, Request*& out) override {
    return comm_.isend(data, bytes, tag, registration, out);
  }
};

class PluginReceiver final : public Shared<Receiver> {
 public:
  using Shared::Shared;
  Status irecv(std::span<const Buffer> group, Request*& out) override { return comm_.irecv(group, out); }
  Status iflush(std::span<const Buffer> group, Request*& out) override { return comm_.iflush(group, out); }
};

}  // namespace

std::unique_ptr<Sender> makeSender(Plugin& plugin, const Device& device, void* comm) {
  return std::make_unique<PluginSender>(plugin, device, comm, true);
}
std::unique_ptr<Receiver> makeReceiver(Plugin& plugin, const Device& device, void* comm) {
  return std::make_unique<PluginReceiver>(plugin, device, comm, false);
}

}  // namespace ncclrun::net::plugin
