#include "net/socket/socket_network.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "net/socket/acceptor.h"
#include "net/socket/socket_connector.h"
#include "net/socket/socket_listener.h"
#include "net/socket/socket_receiver.h"
#include "net/socket/socket_sender.h"
#include "net/socket/wished_interfaces.h"

namespace ncclrun::net {
namespace {

Status systemFailure(const char* call) {
  const int error = errno;
  return {ncclSystemError,
          std::string("the socket network: ") + call + ": " + std::strerror(error) + limitBehind(error)};
}

// The other side has acknowledged all that was sent, or never will. Discards what has come from it.
bool isDelivered(int descriptor) {
  std::array<std::byte, 4096> discarded;
  ssize_t got = 0;
  do {
    got = recv(descriptor, discarded.data(), discarded.size(), MSG_DONTWAIT);
  } while (got > 0 || (got < 0 && errno == EINTR));
  if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return true;
  int unacknowledged = 0;
  return ioctl(descriptor, SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
}

}  // namespace

std::string describeDevice(const SocketDevice& device) {
  return device.interface.empty() ? device.address : device.address + " (" + device.interface + ")";
}

Status SocketNetwork::make(SocketConfig config, std::unique_ptr<SocketNetwork>& out) {
  if (config.sockets == 0 || config.sockets >= kMaxSockets) {
    return {ncclInvalidArgument, "a connection can have 1 to " + std::to_string(kMaxSockets - 1) + " sockets, not " +
                                     std::to_string(config.sockets)};
  }
  std::unique_ptr<SocketNetwork> made(new SocketNetwork(std::move(config)));
  Status status = made->start();
  if (status.ok()) out = std::move(made);
  return status;
}

SocketNetwork::~SocketNetwork() {
  constexpr std::chrono::milliseconds kMax{200}, kPause{1};
  const auto end = std::chrono::steady_clock::now() + kMax;
  for (const Descriptor& each : undelivered_) {
    while (!isDelivered(each.get()) && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPause);
  }
}

void SocketNetwork::closeDelivered(Descriptor descriptor) {
  shutdown(descriptor.get(), SHUT_WR);
  if (isDelivered(descriptor.get())) return;
  unwatch(descriptor.get());
  std::lock_guard lock(mutex_);
  undelivered_.push_back(std::move(descriptor));
}

void SocketNetwork::pair(Sender& sender, Receiver& receiver) {
  auto& out = static_cast<SocketSender&>(sender);
  auto& in = static_cast<SocketReceiver&>(receiver);
  if (out.sharableSocket() == nullptr || in.sharableSocket() == nullptr) return;
  if (out.number() < in.number()) {
    in.receiveOver(out.sharableSocket());
    out.offerTo(in.number());
  } else if (out.number() > in.number()) {
    out.sendOver(in.sharableSocket());
  }
}

Status SocketNetwork::start() {
  NCCLRUN_TRY(checkWishedInterfaces(config_.devices));
  for (const SocketDevice& device : config_.devices) {
    const std::optional<Address> address = parseAddress(device.address);
    if (!address.has_value()) {
      return {ncclInvalidArgument, "the address \"" + device.address + "\" of " + device.interface +
                                       " is no IPv4 or IPv6 address, or names an interface that does not exist"};
    }
    addresses_.push_back(*address);
    Device& known = devices_.emplace_back();
    known.name = device.interface;
    known.pciPath = device.pciPath;
    known.speedMbps = device.speedMbps;
    known.maxReceives = 8;
    known.maxMessageBytes = uint64_t(1) << 40;
    known.globalRegistrations = true;
  }
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return systemFailure("epoll_create1");
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return systemFailure("eventfd");
  if (Status status = watch(wake_.get(), false); !status.ok()) return status;
  for (uint32_t i = 0; i < config_.helpers; i++) {
    std::unique_ptr<Helper> helper;
    if (Status status = Helper::start(i, helper); !status.ok()) return status;
    helpers_.push_back(std::move(helper));
  }
  return {};
}

Helper* SocketNetwork::helperOf(uint32_t socket, uint32_t helperOffset) {
  return helpers_.empty() || socket == 0 ? nullptr : helpers_[(socket - 1 + helperOffset) % helpers_.size()].get();
}

uint32_t SocketNetwork::nextHelperOffset(bool sends) {
  if (sends) return senders_.fetch_add(1, std::memory_order_relaxed);
  return receivers_.fetch_add(1, std::memory_order_relaxed) + uint32_t(helpers_.size() / 2);
}

Status SocketNetwork::watch(int descriptor, bool edgeTriggered) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  if (edgeTriggered) event.events |= EPOLLOUT | EPOLLRDHUP | EPOLLET;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 || errno == EEXIST) return {};
  return systemFailure("epoll_ctl");
}

void SocketNetwork::unwatch(int descriptor) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

void SocketNetwork::notify() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

bool SocketNetwork::clearEvents() {
  std::array<epoll_event, 64> events;
  bool any = false;
  size_t got = events.size();
  while (got == events.size()) {
    got = size_t(std::max(epoll_wait(epoll_.get(), events.data(), int(events.size()), 0), 0));
    any = any || got > 0;
    for (const epoll_event& event : std::span(events).first(got)) {
      const int descriptor = event.data.fd;
      if (descriptor == wake_.get()) {
        uint64_t count = 0;
        [[maybe_unused]] const ssize_t size = read(descriptor, &count, sizeof count);
      } else if (size_t(descriptor) < events_.size()) {
        events_[size_t(descriptor)].store(true, std::memory_order_release);
      }
    }
  }
  return any;
}

bool SocketNetwork::takeEvent(int descriptor) {
  if (size_t(descriptor) >= events_.size()) return true;
  std::atomic<bool>& event = events_[size_t(descriptor)];
  return event.load(std::memory_order_relaxed) && event.exchange(false, std::memory_order_acquire);
}

void SocketNetwork::prepare(int descriptor) const {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (const int bytes = config_.sendBufferBytes; bytes > 0)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  if (const int bytes = config_.receiveBufferBytes; bytes > 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

Status SocketNetwork::listen(uint32_t device, Handle& handle, std::unique_ptr<Listener>& out) {
  if (device >= addresses_.size()) return {ncclInvalidArgument, "there is no device " + std::to_string(device)};
  Status why;
  std::shared_ptr<Acceptor> acceptor = Acceptor::of(addresses_[device], why);
  if (acceptor == nullptr) return why;
  NCCLRUN_TRY(retainAcceptor(*acceptor));
  auto listener = std::make_unique<SocketListener>(*this, std::move(acceptor), device);
  handle = listener->handle();
  out = std::move(listener);
  return {};
}

Status SocketNetwork::retainAcceptor(const Acceptor& acceptor) {
  std::lock_guard lock(mutex_);
  uint32_t& listeners = acceptors_[&acceptor];
  // An edge that another communicator's listener has cleared is seen by it alone, so this one looks at the level.
  if (listeners == 0) NCCLRUN_TRY(watch(acceptor.eventDescriptor(), false));
  listeners++;
  return {};
}

void SocketNetwork::releaseAcceptor(const Acceptor& acceptor) {
  std::lock_guard lock(mutex_);
  const auto found = acceptors_.find(&acceptor);
  if (--found->second > 0) return;
  unwatch(acceptor.eventDescriptor());
  acceptors_.erase(found);
}

Status SocketNetwork::connect(uint32_t device, const Handle& handle, std::unique_ptr<Connector>& out) {
  if (device >= addresses_.size()) return {ncclInvalidArgument, "there is no device " + std::to_string(device)};
  const std::optional<ListenerAddress> peer = decodeHandle(handle);
  if (!peer.has_value()) {
    return {ncclInvalidArgument, "the peer's address is not one of the socket network: do all ranks use the same one?"};
  }
  out = std::make_unique<SocketConnector>(*this, device, *peer);
  return {};
}

}  // namespace ncclrun::net
