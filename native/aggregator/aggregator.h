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

namespace ncclrun::aggregator {

struct AggregatorConfig {
  std::string address;  // to listen on
  net::Token token = {};
  ServerLimits limits = {};
};

// Of the aggregator at an address with its port, for whoever knows the token.
net::Handle handleOf(const net::Address& address, const net::Token& token);

// Serves in a thread of its own until it is destroyed.
class Aggregator {
 public:
  static Status make(const AggregatorConfig& config, std::unique_ptr<Aggregator>& out);
  ~Aggregator();
  Aggregator(const Aggregator&) = delete;
  Aggregator& operator=(const Aggregator&) = delete;

  // Where members find it: handleOf() its address with the port and the token says the same.
  net::Handle handle() const;
  uint16_t port() const;
  Server::Figures figures() const { return server_->figures(); }

 private:
  Aggregator() = default;
  void serve();
  void acceptAll();

  std::shared_ptr<net::Acceptor> acceptor_;
  uint64_t listener_ = 0;  // a number that follows from the token
  std::unique_ptr<Server> server_;
  Descriptor stop_;
  std::thread thread_;
};

}  // namespace ncclrun::aggregator
