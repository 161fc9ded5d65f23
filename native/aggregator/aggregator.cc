#include "aggregator/aggregator.h"

#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/debug.h"
#include "base/thread.h"
#include "net/socket/socket_connector.h"

namespace ncclrun::aggregator {
namespace {

// Connects to other aggregators from the network's device.
Dial dialFrom(const std::shared_ptr<net::SocketNetwork>& network) {
  return [network](const net::ListenerAddress& where) -> Connecting {
    return [network, connector = std::make_shared<net::SocketConnector>(*network, 0, where)](Descriptor& out) {
      std::vector<Descriptor> sockets;
      NCCLRUN_TRY(connector->connectSockets(sockets));
      if (sockets.empty()) return Status{};
      network->unwatch(sockets.front().get());
      out = std::move(sockets.front());
      return Status{};
    };
  };
}


}  // namespace

uint64_t listenerOf(const net::Token& token) {
  return net::derivedNumber(token, std::array<uint8_t, 4>{'a', 'g', 'g', 'r'});
}

net::Handle handleOf(const net::Address& address, const net::Token& token) {
  return net::encodeHandle({address, listenerOf(token)});
}

Status Aggregator::make(const AggregatorConfig& config, std::unique_ptr<Aggregator>& out) {
  std::unique_ptr<Aggregator> made(new Aggregator);
  const std::optional<net::Address> address = net::parseAddress(config.address);
  if (!address.has_value())
    return {ncclInvalidArgument, "the aggregator's address \"" + config.address + "\" is no IPv4 or IPv6 address"};
  Status why;
  made->acceptor_ = net::Acceptor::of(*address, why);
  if (made->acceptor_ == nullptr) return why;
  made->wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->wake_.valid()) return {ncclSystemError, std::string("the aggregator: eventfd: ") + std::strerror(errno)};
  const auto arrived = [aggregator = made.get()] { aggregator->wake(); };
  made->listener_ = config.listener;
  if (config.listener == 0) {
    made->listener_ = made->acceptor_->open(config.token, arrived);
  } else {
    made->acceptor_->open(config.listener, config.token, arrived);
  }
  net::SocketConfig sockets;
  sockets.devices = {{.interface = {}, .address = config.address}};
  sockets.token = config.token;
  std::unique_ptr<net::SocketNetwork> network;
  NCCLRUN_TRY(net::SocketNetwork::make(std::move(sockets), network));
  made->upwards_ = std::move(network);
  NCCLRUN_TRY(Server::make(config.limits, dialFrom(made->upwards_), made->server_));
  const auto accepts = [aggregator = made.get()] { aggregator->acceptAll(); };
  NCCLRUN_TRY(made->server_->watch(made->wake_.get(), accepts));
  NCCLRUN_TRY(made->server_->watch(made->acceptor_->eventDescriptor(), accepts));
  NCCLRUN_TRY(made->server_->watch(made->upwards_->eventDescriptor(),
                                   [network = made->upwards_.get()] { network->clearEvents(); }));
  try {
    made->thread_ = startThread("ncclrun-reduce", [aggregator = made.get()] { aggregator->serve(); });
  } catch (const std::system_error& refused) {
    return {ncclSystemError, std::string("the aggregator: ") + refused.what()};
  }
  out = std::move(made);
  return {};
}

Aggregator::~Aggregator() {
  if (thread_.joinable()) {
    isStopped_ = true;
    wake();
    thread_.join();
  }
  if (acceptor_ != nullptr) acceptor_->close(listener_);
}

void Aggregator::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

net::Handle Aggregator::handle() const { return net::encodeHandle({acceptor_->address(), listener_}); }

uint16_t Aggregator::port() const { return acceptor_->address().port(); }

void Aggregator::acceptAll() {
  uint64_t wakes = 0;
  [[maybe_unused]] const ssize_t got = read(wake_.get(), &wakes, sizeof wakes);
  std::vector<net::AcceptedSocket> arrived;
  if (const Status status = acceptor_->poll(listener_, arrived); !status.ok()) logWarning(status.sentence);
  for (net::AcceptedSocket& socket : arrived) server_->adopt(std::move(socket.descriptor), std::move(socket.peer));
}

void Aggregator::serve() {
  while (!isStopped_) {
    if (const Status status = server_->poll(-1); !status.ok()) return logWarning(status.sentence);
  }
}

}  // namespace ncclrun::aggregator
