// The connections of one rank: asks the transport that the plan names for each.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "datapath/gone_peers.h"
#include "datapath/spin_wait.h"
#include "datapath/step_call.h"
#include "host/shm/transport.h"
#include "ncclrun.h"
#include "net/proxy/net_transport.h"
#include "plan/plan_view.h"
#include "plan/segment.h"

namespace ncclrun {

class Connections final : public PeerWatch {
 public:
  Connections(const PlanView& plan, const Segment& segment, uint32_t rank, Interrupt& interrupt,
              const GonePeers& gonePeers, int listenFd, std::shared_ptr<const RecorderClaim> recorder = nullptr);
  // Opens the transports that the plan uses.
  Status start();

  // Steps sent and received from now on belong to this operation. Called on the thread that runs it.
  void begin(const Operation& operation) { own_.call = callOf(operation, own_.call); }
  void beginLaunch() { net_->beginLaunch(); }
  void endLaunch() { net_->endLaunch(); }
  void checkPeers() override { net_->checkPeers(); }
  void watchAll() override { net_->watchAll(); }

  // Begins connecting the ring edges to other hosts.
  Status connect();
  // Null only after an interrupt.
  Endpoint* ring(uint32_t channel, uint32_t peer, bool sends);
  Endpoint* pair(uint32_t peer, bool sends);
  // The group of this rank's rail, which the network reduces.
  Endpoint* group(bool sends) { return net_->group(sends); }
  NetworkReductions networkReductions() const { return net_->networkReductions(); }
  void useNetworkReductions(NetworkReductions agreed) { net_->useNetworkReductions(agreed); }

  bool idle() const;
  // Ring edges in the plan's order, then pair connections in order of first use.
  size_t list(std::span<ncclrunEdge> out) const;

 private:
  Endpoint* find(uint32_t peer, uint32_t channel, bool sends, uint8_t transport);
  bool usesNetwork() const;

  const PlanView& plan_;
  const uint32_t rank_;
  OwnCall own_;
  std::unique_ptr<ShmTransport> shm_;
  std::unique_ptr<NetTransport> net_;
  mutable std::mutex mutex_;  // of listed_
  std::map<std::tuple<uint32_t, uint32_t, bool>, Endpoint*> found_;
  std::vector<Endpoint*> rings_, pairs_;
  bool begun_ = false;
};

}  // namespace ncclrun
