// Connections over a network: between ranks of different hosts, or of one, where memory cannot be shared.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>

#include "datapath/gone_peers.h"
#include "datapath/interrupt.h"
#include "net/net.h"
#include "net/oob/oob_network.h"
#include "net/proxy/net_endpoint.h"
#include "net/proxy/peer_states.h"
#include "net/proxy/proxy.h"
#include "net/proxy/rail_group.h"
#include "net/proxy/rail_group_endpoint.h"
#include "net/transport.h"
#include "plan/plan_view.h"

namespace ncclrun {

class NetTransport final : public Transport, private Proxy::Work, private NetEndpointOwner, private RailGroupOwner {
 public:
  // Lets connections in if `listenFd` is not -1; takes it over in any case. current: the call under way. own: this
  // rank's doorbell. device: whose kernels play the blocks; null: blocks do. recorder: counts what connections carry.
  NetTransport(const PlanView& plan, uint32_t rank, const OwnCall& current, Interrupt& interrupt, Doorbell& own,
               const GonePeers& gonePeers, int listenFd, DeviceRings* device = nullptr,
               std::shared_ptr<const RecorderClaim> recorder = nullptr);
  // Says goodbye to every peer and waits, with one timeout for all, for peers that have no room for what this rank has
  // sent.
  ~NetTransport() override;
  Status start();

  Endpoint* endpoint(uint32_t peer, uint32_t channel, bool sends) override;
  Status connected() const override;
  void checkPeers() override;
  void watchAll() override;
  void beginLaunch() override;
  void endLaunch() override;
  bool idle() const override;
  // Reads what a peer has said and the proxy has not read yet: it may have left. Any thread.
  void lookAt(uint32_t peer);
  // Where start() has succeeded.
  net::Network& network() const { return *network_; }
  // Of the network, which carries the connection.
  uint32_t deviceOf(uint32_t peer, uint32_t channel, bool sends) const;
  // This rank's side of the group of channel 0. Null: the plan has no use for groups, or this rank is in none.
  Endpoint* group(bool sends);
  // The channels on which this rank may be in a group; 0: on none.
  uint32_t groupChannels() const { return uint32_t(groups_.size()); }
  // The kernels' rings for groups are there.
  void placeGroups();
  // What this rank's groups can reduce, when connected(); none: one of them was not made.
  NetworkReductions networkReductions() const;
  // What the groups of all ranks can, which they have agreed on: groups are of no use where that is nothing.
  void useNetworkReductions(NetworkReductions agreed);
  // Tells a rank of another host which collective this one has called. Any thread.
  void sendCall(uint32_t peer, const StepCall& call);
  // The program has destroyed the communicator; its graphs may still run.
  void endAtExit() { proxy_.endAtExit(); }
  // This rank leaves in order, as Doorbell::left has it.
  void leave(uint64_t collectives) { collectives_.store(collectives, std::memory_order_relaxed); }

 private:
  // A goodbye and the end of a data connection travel on different sockets: so long the one waits for the other.
  static constexpr uint64_t kGoodbyeBehindNanoseconds = 300'000'000;

  struct Group {
    std::unique_ptr<RailGroup> own;  // null: this rank is not a member
    std::vector<uint32_t> ranks;     // its members, by host
    uint64_t failedAt = 0;           // nanoseconds; the proxy's thread alone
  };
  using Event = net::OobNetwork::Event;
  using Key = std::tuple<uint32_t, uint32_t, bool>;  // peer, channel, sends

  void onOutOfBand() override;
  Outcome onNetwork(bool fromNetwork) override;
  uint64_t onTick() override;
  void onEnd() override;

  void moveFor(NetEndpoint& endpoint) override;
  void watch(NetEndpoint& endpoint) override;
  Status whyGone(NetEndpoint& endpoint) override;

  void moveGroup() override;
  Status whyGroupGone() override;
  Status makeGroups();
  Status makeGroup(uint32_t channel);
  void offerGroup(uint32_t channel, const net::Handle* handle);
  void onGroupMessage(uint32_t peer, const net::OobMessage& message);
  Outcome advanceGroups();
  Outcome advance(Group& group);
  // Says which member is lost, if one is.
  Outcome fail(Group& group);
  Status whyGone(const Group& group) const;
  Status whyLeft(const Group& group) const;

  // NCCLRUN_NET_TIMEOUT.
  static Status silenceTimeout(uint64_t& nanoseconds);
  Status startNetworks();
  // The blocks move nothing for a while: unsent slots are the proxy's.
  void handOver();
  // The endpoint, made if need be; null if that failed.
  NetEndpoint* find(uint32_t peer, uint32_t channel, bool sends);
  // Of the two ranks alone, not of a ring.
  bool isPair(uint32_t channel) const;
  Outcome moveDevice(bool hasEvents);
  // NetConnection::advance() of a block's connection.
  bool advance(NetEndpoint& endpoint, NetConnection::Extent extent);
  // Lets the network carry both directions together where they are open.
  bool pairIfOpen(NetEndpoint& endpoint);
  // Nothing of a pair's channel, nor where kernels play the blocks.
  std::optional<plan::EdgeRecord> ringEdge(uint32_t channel, bool sends) const;
  Status make(const Key& key, std::unique_ptr<NetEndpoint>& out);
  // Exchanges what the two sides need to connect.
  void introduce(NetEndpoint& endpoint);
  void send(uint32_t peer, const net::OobMessage& message);
  void handle(const std::vector<Event>& events);
  bool isForeign(uint32_t peer) const;
  // Raises the interrupt if so, and tells the peer.
  bool usesOtherNetwork(uint32_t peer, const std::string& theirs);
  void onMessage(uint32_t peer, const net::OobMessage& message);
  void onGone(uint32_t peer, PeerState state);
  // The peer of a failed connection is there: after a moment, in which its goodbye may still come, it is lost.
  void judgeFailures();
  // Whether what a kernel has just posted for this endpoint's peer reaches nobody; the communicator is told so.
  bool isForNobody(NetEndpoint& endpoint);
  void notifyDevice(uint32_t peer, const PeerState& state);
  // Ends the communicator, because what this rank has sent may be lost.
  void failSender(const NetEndpoint& endpoint, const PeerState& state);
  // Nothing more comes from, or goes to, that peer.
  bool isOver(NetEndpoint& endpoint, const PeerState& state);
  Status statusOf(const NetEndpoint& endpoint, const PeerState& state) const;
  // Of a peer that has not left in order. where: of which connection it is said.
  Status lossOf(uint32_t peer, const PeerState& state, const std::string& where = {}) const;
  void sendGoodbye();
  // Without blocking. True once all that this rank has sent there has arrived, or is not wanted.
  bool hasSentAll(NetEndpoint& endpoint);
  // The same of a receiver: it has no open receives, or nobody completes them.
  bool isDrained(NetEndpoint& endpoint);
  net::OobMessage ownGoodbye() const;
  void takeLastMessages();
  // `end`, `endTaken` and `stop`.
  void onEndMessage(uint32_t peer, const net::OobMessage& message);
  // Tells the peer if its last message has come.
  void confirmEnd(NetEndpoint& endpoint);
  // The proxy goes on with the end of the connection.
  bool isEnding(const NetEndpoint& endpoint) const;

  Status addressOf(uint32_t rank, net::Address& out) const;
  // At most, of this rank: with each peer a connection each way, and those of the rings.
  uint32_t maxConnections() const;
  // A connection from `from` on `channel` is one the plan knows.
  bool planned(uint32_t from, uint32_t channel) const;

  const PlanView& plan_;
  const uint32_t rank_;
  const OwnCall& current_;
  Interrupt& interrupt_;
  Doorbell& own_;
  const GonePeers& gonePeers_;
  DeviceRings* const device_;
  const std::shared_ptr<const RecorderClaim> recorder_;
  Descriptor listening_;
  uint64_t timeoutNanoseconds_ = 0;

  std::unique_ptr<net::Network> network_;
  plan::Transport transport_ = plan::Transport::socket;  // of its connections
  std::vector<Group> groups_;                            // by channel; unchanged from start() on
  std::atomic<int> busy_{0};                             // senders with something to carry
  std::atomic<uint64_t> collectives_{0};
  std::atomic<bool> isLaunched_{false};  // blocks run, or sleep until something has come
  mutable std::mutex mutex_;             // of what follows; never held together with outOfBandMutex_
  std::map<Key, std::unique_ptr<NetEndpoint>> endpoints_;
  std::map<std::pair<uint32_t, uint32_t>, net::Handle> offers_;  // by peer and channel: that nobody has asked for yet
  std::set<uint32_t> foreign_;                                   // peers on another network
  std::unique_ptr<RailGroupEndpoint> groupSends_, groupReceives_;
  NetEndpointList list_;  // the same endpoints, for whoever goes through all of them without the mutex

  std::mutex outOfBandMutex_;  // of outOfBand_
  std::unique_ptr<net::OobNetwork> outOfBand_;
  PeerStates peerStates_;
  std::atomic<uint64_t> ringAt_{0};  // nanoseconds: when a block is to look at lost peers again; 0: never
  std::map<const NetEndpoint*, uint64_t> failedSince_;  // the proxy's thread alone
  bool isDraining_ = true;                              // the same: ends of connections are still waited for
  Proxy proxy_{*this};                                  // last: its thread ends first
};

}  // namespace ncclrun
