#include "net/verbs/verbs_network.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "net/verbs/queue_pair.h"
#include "net/verbs/verbs_connector.h"
#include "net/verbs/verbs_listener.h"

namespace ncclrun::net {

namespace {

// A module of the kernel by which cards register GPU memory by its address: nvidia-peermem, and Mellanox' older ones.
bool hasPeerMemory() {
  for (const char* const path : {"/sys/module/nvidia_peermem", "/sys/kernel/mm/memory_peers/nv_mem",
                                 "/sys/kernel/mm/memory_peers/nv_mem_nc", "/sys/module/nv_peer_mem"}) {
    if (access(path, F_OK) == 0) return true;
  }
  return false;
}

}  // namespace

Status VerbsNetwork::make(VerbsConfig config, std::unique_ptr<VerbsNetwork>& out) {
  std::unique_ptr<VerbsNetwork> made(new VerbsNetwork(std::move(config)));
  NCCLRUN_TRY(made->start());
  out = std::move(made);
  return {};
}

Status VerbsNetwork::start() {
  // A socket is the same for every port: it only introduces.
  NCCLRUN_TRY(SocketNetwork::make({.devices = {{.interface = {}, .address = config_.address}}, .token = config_.token},
                                  sockets_));
  for (const VerbsPort& port : config_.ports) NCCLRUN_TRY(openPort(port));
  return {};
}

Status VerbsNetwork::openPort(const VerbsPort& port) {
  std::shared_ptr<Card> card;
  NCCLRUN_TRY(Card::open(port.card, card));
  verbs::Gid gid = {};
  if (!port.gid.empty() && !parseGid(port.gid, gid))
    return {ncclInvalidArgument, "\"" + port.gid + "\" of " + port.card + " is no GID"};
  const auto known = std::find_if(channels_.begin(), channels_.end(), [&](const Channel& c) { return c.card == card; });
  channelOf_.push_back(size_t(known - channels_.begin()));
  if (known == channels_.end()) {
    verbs::CompletionChannel* const channel = card->library().createChannel(card->context());
    if (channel == nullptr) {
      const int error = errno;
      return {ncclSystemError, port.card + ": ibv_create_comp_channel: " + std::strerror(error) + limitBehind(error)};
    }
    SocketNetwork& sockets = *sockets_;
    channels_.push_back({card, channel, card->subscribe([&sockets] { sockets.notify(); })});
    const int flags = fcntl(channel->descriptor, F_GETFL);
    if (flags < 0 || fcntl(channel->descriptor, F_SETFL, flags | O_NONBLOCK) != 0)
      return {ncclSystemError, port.card + ": fcntl: " + std::strerror(errno)};
    NCCLRUN_TRY(sockets.watch(channel->descriptor, false));
  }
  const verbs::DeviceAttributes& attributes = card->attributes();
  Device& device = devices_.emplace_back();
  device.name = port.card;
  device.pciPath = port.pciPath;
  device.guid = attributes.systemImageGuid;
  device.port = port.port;
  device.speedMbps = port.speedMbps;
  device.maxConnections = uint32_t(std::max(attributes.maxQueuePairs, 1));
  device.maxReceives = kMaxGroup;
  device.globalRegistrations = true;
  device.dmaBuf = card->hasDmaBuf();
  device.deviceMemory = device.dmaBuf || hasPeerMemory();
  gids_.push_back(gid);
  cards_.push_back(std::move(card));
  return {};
}

VerbsNetwork::~VerbsNetwork() {
  for (const Channel& one : channels_) {
    one.card->unsubscribe(one.subscription);
    sockets_->unwatch(one.channel->descriptor);
    one.card->library().destroyChannel(one.channel);
  }
}

std::string VerbsNetwork::describe(uint32_t device) const {
  const VerbsPort& port = config_.ports[device];
  return port.card + " port " + std::to_string(port.port) + (port.gid.empty() ? "" : ", GID " + port.gid);
}

// What has come before a queue is armed again makes no event: the caller looks at every connection after this.
bool VerbsNetwork::clearEvents() {
  bool any = sockets_->clearEvents();
  {
    std::lock_guard lock(mutex_);
    for (const Channel& one : channels_) {
      verbs::CompletionQueue* queue = nullptr;
      void* owner = nullptr;
      while (one.card->library().getCqEvent(one.channel, &queue, &owner) == 0) {
        one.card->library().ackCqEvents(queue, 1);
        queue->context->requestNotify(queue, 0);
        any = true;
      }
    }
  }
  if (any) eventsSeen_.fetch_add(1, std::memory_order_release);
  return any;
}

verbs::CompletionQueue* VerbsNetwork::createCompletionQueue(uint32_t device, uint32_t entries) {
  const Channel& one = channels_[channelOf_[device]];
  verbs::Context* const context = one.card->context();
  std::lock_guard lock(mutex_);
  verbs::CompletionQueue* const made = one.card->library().createCq(context, int(entries), nullptr, one.channel, 0);
  if (made != nullptr) context->requestNotify(made, 0);
  return made;
}

void VerbsNetwork::destroyCompletionQueue(uint32_t device, verbs::CompletionQueue* queue) {
  std::lock_guard lock(mutex_);
  cards_[device]->library().destroyCq(queue);
}

Status VerbsNetwork::listen(uint32_t device, Handle& handle, std::unique_ptr<Listener>& out) {
  if (device >= devices_.size()) return {ncclInvalidArgument, "there is no device " + std::to_string(device)};
  Status why;
  std::shared_ptr<Acceptor> acceptor = Acceptor::of(sockets_->address(0), why);
  if (acceptor == nullptr) return why;
  NCCLRUN_TRY(sockets_->retainAcceptor(*acceptor));
  auto listener = std::make_unique<VerbsListener>(*this, std::move(acceptor), device);
  handle = listener->handle();
  out = std::move(listener);
  return {};
}

Status VerbsNetwork::connect(uint32_t device, const Handle& handle, std::unique_ptr<Connector>& out) {
  if (device >= devices_.size()) return {ncclInvalidArgument, "there is no device " + std::to_string(device)};
  const std::optional<ListenerAddress> peer = decodeHandle(handle);
  if (!peer.has_value())
    return {ncclInvalidArgument, "the peer's address is not one of the network IB: do all ranks use the same one?"};
  out = std::make_unique<VerbsConnector>(*this, device, *peer);
  return {};
}

}  // namespace ncclrun::net
