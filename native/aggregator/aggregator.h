// An aggregator: the reduction server of a job. Members of groups connect to it over TCP, prove that they know the
// job's token, contribute, and receive what all have contributed together.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "aggregator/server.h"
#include "net/net.h"
#include "net/socket/acceptor.h"
#include "net/socket/socket_network.h"

namespace ncclrun::aggregator {

struct AggregatorConfig {
  std::string address;  // to listen on
  net::Token token = {};
  uint64_t listener = 0;     // its number at the address; 0: a random one
  ServerLimits limits = {};
};

// The number of the one aggregator of its process, and its handle, for whoever knows address, port and token.
uint64_t listenerOf(const net::Token& token);
net::Handle handleOf(const net::Address& address, const net::Token& token);

// Serves in a thread of its own until it is destroyed.
class Aggregator {
 public:
  static Status make(const AggregatorConfig& config, std::unique_ptr<Aggregator>& out);
  ~Aggregator();
  Aggregator(const Aggregator&) = delete;
  Aggregator& operator=(const Aggregator&) = delete;

  // Where members find it.
  net::Handle handle() const;
  uint16_t port() const;
  Server::Figures figures() const { return server_->figures(); }

 private:
  Aggregator() = default;
  void serve();
  void acceptAll();
  void wake() const;

  std::shared_ptr<net::Acceptor> acceptor_;
  uint64_t listener_ = 0;
  std::shared_ptr<net::SocketNetwork> upwards_;  // to the parents in trees of aggregators
  std::unique_ptr<Server> server_;
  Descriptor wake_;  // the thread, to accept what another listener's poll has found, or to end
  std::atomic<bool> isStopped_{false};
  std::thread thread_;
};

}  // namespace ncclrun::aggregator
