// TCP between ranks of different hosts (or of one, where memory cannot be shared).
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "datapath/interrupt.h"
#include "net/proxy.h"
#include "net/socket/endpoint.h"
#include "net/socket/listener.h"
#include "net/transport.h"
#include "plan/plan_view.h"

namespace ncclrun {

class SocketTransport final : public Transport {
 public:
  // Begins to let connections in if `listenFd` is not -1; takes it over in any case.
  // current: the call under way.
  SocketTransport(const PlanView& plan, uint32_t rank, const OwnCall& current, Interrupt& interrupt, Doorbell& own,
                  const GonePeers& gonePeers, int listenFd);
  // Sends a goodbye to every peer and waits, with one timeout for all, for peers whose sockets are full.
  ~SocketTransport() override;
  Status start();

  Endpoint* end(uint32_t peer, uint32_t channel, bool sends) override;
  Status connected() const override;
  void checkPeers() override;
  void watchAll() override;
  bool idle() const override;

 private:
  // The end, made if need be (then `made` is set); null if that failed.
  SocketEndpoint* find(uint32_t peer, uint32_t channel, bool sends, bool& made);
  socket::Hello helloTo(uint32_t peer, uint32_t channel) const;
  void admit(const socket::Hello& hello, Descriptor& connection);
  // At most, of this rank: with each peer a connection each way, and those of the rings.
  uint32_t mostConnections() const;
  // A connection from `from` on `channel` is one the plan knows.
  bool planned(uint32_t from, uint32_t channel) const;

  const PlanView& plan_;
  const uint32_t rank_;
  const OwnCall& current_;
  Interrupt& interrupt_;
  Doorbell& own_;
  const GonePeers& gonePeers_;
  Descriptor listening_;
  std::shared_ptr<Proxy> proxy_;
  mutable std::mutex mutex_;  // of ends_: blocks and the proxy's thread ask for ends
  std::map<std::tuple<uint32_t, uint32_t, bool>, std::unique_ptr<SocketEndpoint>> ends_;
  std::unique_ptr<Listener> listener_;  // last: ends first
};

}  // namespace ncclrun
