#include "aggregator/aggregator_network.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "aggregator/aggregator_group.h"
#include "aggregator/stripe_listener.h"
#include "aggregator/striped_group.h"

namespace ncclrun::aggregator {
namespace {

const std::string& networkName() {
  static const std::string name = "Aggregator";
  return name;
}

// What a member's handle says: a number that no other member has.
struct MemberHandle {
  std::array<char, 8> magic = {'n', 'c', 'a', 'g', 'm', 'e', 'm', '1'};
  net::Nonce number = {};
};

class AggregatorListener final : public net::CollectiveListener {
 public:
  AggregatorListener(const Servers& servers, net::Handle handle) : servers_(servers), handle_(handle) {}

  Status connect(std::span<const net::Handle> handles, uint32_t rank,
                 std::unique_ptr<net::CollectiveGroup>& out) override {
    out = nullptr;
    if (stripes_.empty()) NCCLRUN_TRY(start(handles, rank));
    bool areConnected = true;
    for (size_t stripe = 0; stripe < stripes_.size(); stripe++) {
      if (groups_[stripe] == nullptr) NCCLRUN_TRY(stripes_[stripe]->connect(groups_[stripe]));
      areConnected = areConnected && groups_[stripe] != nullptr;
    }
    if (areConnected) out = makeStripedGroup(std::move(groups_));
    return {};
  }

 private:
  Status start(std::span<const net::Handle> handles, uint32_t rank);

  const Servers& servers_;
  const net::Handle handle_;
  std::vector<std::unique_ptr<StripeListener>> stripes_;
  std::vector<std::unique_ptr<net::CollectiveGroup>> groups_;  // null: not connected yet
};

Status AggregatorListener::start(std::span<const net::Handle> handles, uint32_t rank) {
  if (rank >= handles.size() || handles.size() > kMaxMembers)
    return {ncclInvalidArgument, formatSentence("the collective network %s: a group of %zu has no member %u",
                                                networkName().c_str(), handles.size(), rank)};
  std::vector<uint8_t> all;
  for (const net::Handle& handle : handles) {
    MemberHandle member;
    std::memcpy(&member, handle.data(), sizeof member);
    if (member.magic != MemberHandle{}.magic)
      return {ncclInvalidArgument, formatSentence("the collective network %s: a member's handle is not one of this "
                                                  "network: do all ranks use the same one?",
                                                  networkName().c_str())};
    all.insert(all.end(), member.number.begin(), member.number.end());
  }
  if (handles[rank] != handle_)
    return {ncclInvalidArgument, formatSentence("the collective network %s: member %u listens at another handle",
                                                networkName().c_str(), rank)};
  // All members, and nobody else, derive the same one.
  const Sha256Digest digest = hmacSha256(servers_.token, all);
  const auto members = uint32_t(handles.size());
  groups_.resize(stripesOf(members, servers_));
  for (uint32_t stripe = 0; stripe < groups_.size(); stripe++)
    stripes_.push_back(std::make_unique<StripeListener>(servers_, digest, stripe, rank, members));
  return {};
}

class AggregatorNetwork final : public net::CollectiveNetwork {
 public:
  explicit AggregatorNetwork(Servers servers) : servers_(std::move(servers)) {
    device_.name = servers_.sockets->devices()[0].name;
    device_.maxCollectiveBytes = uint64_t(1) << 40;
  }

  const std::string& name() const override { return networkName(); }
  std::span<const net::Device> devices() const override { return {&device_, 1}; }
  bool threadBound() const override { return false; }
  bool canReduce(net::Reduction reduction) const override { return isReducible(reduction); }
  bool canGather() const override { return false; }

  Status listen(uint32_t device, net::Handle& handle, std::unique_ptr<net::CollectiveListener>& out) override {
    if (device != 0)
      return {ncclInvalidArgument,
              formatSentence("the collective network %s: there is no device %u", networkName().c_str(), device)};
    MemberHandle member;
    if (!net::fillRandom(member.number.data(), member.number.size()))
      return {ncclSystemError, "the system gives no random numbers"};
    handle = {};
    std::memcpy(handle.data(), &member, sizeof member);
    out = std::make_unique<AggregatorListener>(servers_, handle);
    return {};
  }

 private:
  const Servers servers_;
  net::Device device_;
};

}  // namespace

Status makeAggregatorNetwork(const NetworkConfig& config, std::unique_ptr<net::CollectiveNetwork>& out) {
  Servers servers{.sockets = nullptr,
                  .addresses = {},
                  .token = config.token,
                  .timeout = config.timeout,
                  .fanIn = config.servers.size() == 1 ? kMaxMembers : std::max(config.fanIn, 2u),
                  .heartbeats = std::make_unique<Heartbeats>(config.timeout / kHeartbeatsPerTimeout)};
  for (const net::Handle& handle : config.servers) {
    const std::optional<net::ListenerAddress> address = net::decodeHandle(handle);
    if (!address.has_value()) return {ncclInvalidArgument, "a handle is not that of an aggregator"};
    servers.addresses.push_back(*address);
  }
  if (servers.addresses.empty()) return {ncclInvalidArgument, "there is no aggregator"};
  net::SocketConfig sockets;
  sockets.devices = {{.interface = config.interface, .address = config.address}};
  sockets.token = config.token;
  NCCLRUN_TRY(net::SocketNetwork::make(std::move(sockets), servers.sockets));
  out = std::make_unique<AggregatorNetwork>(std::move(servers));
  return {};
}

}  // namespace ncclrun::aggregator
