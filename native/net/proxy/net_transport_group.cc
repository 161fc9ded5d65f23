// NetTransport: the groups of this rank, which the network reduces.
#include <cstring>
#include <utility>

#include "aggregator/aggregator.h"
#include "base/clock.h"
#include "base/debug.h"
#include "net/proxy/choose_network.h"
#include "net/proxy/net_transport.h"
#include "plan/collnet_shape.h"

namespace ncclrun {
namespace {

// Those of the job, if the plan has any.
Status aggregatorsOf(const PlanView& plan, uint32_t nic, uint64_t timeout,
                     std::optional<aggregator::NetworkConfig>& out) {
  if (plan.aggregators() == 0) return {};
  aggregator::NetworkConfig config;
  std::memcpy(config.token.data(), plan.header().aggregatorToken, config.token.size());
  const bool isReachedByNic = plan.networkName() == net::kSocketNetwork;
  if (isReachedByNic) config.interface = std::string(plan.nicName(nic));
  config.address = std::string(isReachedByNic ? plan.nicAddress(nic) : plan.hostAddress(plan.header().hostIndex));
  config.timeout = timeout;
  for (uint32_t index = 0; index < plan.aggregators(); index++) {
    const std::string text(plan.aggregatorAddress(index));
    std::optional<net::Address> address = net::parseAddress(text);
    if (!address.has_value()) return {ncclInvalidArgument, "the plan has an aggregator at " + text};
    address->setPort(uint16_t(plan.aggregator(index).port));
    config.servers.push_back(aggregator::handleOf(*address, config.token));
  }
  out = std::move(config);
  return {};
}

}  // namespace

Status NetTransport::makeGroups() {
  const uint32_t channels = collnetUse(plan_).channels;
  bool isMember = false;
  for (uint32_t channel = 0; channel < channels; channel++) {
    NCCLRUN_TRY(makeGroup(channel));
    isMember = isMember || groups_[channel].own != nullptr;
  }
  if (!isMember) groups_.clear();
  return {};
}

Status NetTransport::makeGroup(uint32_t channel) {
  const auto& header = plan_.header();
  Group& group = groups_.emplace_back();
  group.ranks = collnetGroup(plan_, rank_, channel, collnetUse(plan_).isChain);
  if (group.ranks.empty()) return {};
  const bool forKernels = device_ != nullptr;
  const uint32_t ring = forKernels ? deviceChannel(channel, header.channels, true) : kPairChannel;
  const uint32_t nic = deviceOf(rank_, ring, true);
  std::optional<aggregator::NetworkConfig> aggregators;
  NCCLRUN_TRY(aggregatorsOf(plan_, nic, timeoutNanoseconds_, aggregators));
  return RailGroup::make({.network = *network_,
                          .aggregators = std::move(aggregators),
                          .owner = plan_.describe(rank_),
                          .device = nic,
                          .channel = channel,
                          .index = plan_.peer(rank_).host,
                          .members = header.hosts,
                          .steps = header.pairSteps,
                          .stepBytes = forKernels ? pairStepBytes(plan_.slots(), channel) : header.pairStepBytes,
                          .forKernels = forKernels,
                          .offer = [this, channel](const net::Handle* handle) { offerGroup(channel, handle); }},
                         group.own);
}

void NetTransport::placeGroups() {
  for (const Group& group : groups_) {
    if (group.own != nullptr) group.own->place(*device_);
  }
  moveGroup();
}

void NetTransport::offerGroup(uint32_t channel, const net::Handle* handle) {
  net::OobMessage message{.kind = handle == nullptr ? net::OobKind::noGroup : net::OobKind::groupOffer,
                          .channel = channel};
  if (handle != nullptr) message.handle = *handle;
  for (const uint32_t member : groups_[channel].ranks) {
    if (member != rank_) send(member, message);
  }
}

void NetTransport::onGroupMessage(uint32_t peer, const net::OobMessage& message) {
  if (message.channel >= groups_.size() || groups_[message.channel].own == nullptr) return;
  const Group& group = groups_[message.channel];
  for (uint32_t member = 0; member < group.ranks.size(); member++) {
    if (group.ranks[member] != peer) continue;
    group.own->onOffer(member, message.kind == net::OobKind::groupOffer ? &message.handle : nullptr);
    moveGroup();
  }
}

Endpoint* NetTransport::group(bool sends) {
  if (groups_.empty() || groups_[0].own == nullptr) return nullptr;
  RailGroup& own = *groups_[0].own;
  std::lock_guard lock(mutex_);
  std::unique_ptr<RailGroupEndpoint>& end = sends ? groupSends_ : groupReceives_;
  if (end == nullptr) {
    const std::vector<uint32_t>& ranks = groups_[0].ranks;
    const uint32_t next = ranks[(plan_.peer(rank_).host + 1) % ranks.size()];
    const Endpoint::Facts facts{.peer = next,
                                .channel = kPairChannel,
                                .sends = sends,
                                .transport = transport_,
                                .steps = plan_.header().pairSteps,
                                .stepBytes = plan_.header().pairStepBytes,
                                .peerName = "the collective network " + own.networkName()};
    RailGroupOwner& owner = *this;
    end =
        std::make_unique<RailGroupEndpoint>(facts, current_, sends ? own.sends() : own.receives(), own.stride(), owner);
  }
  return end.get();
}

NetworkReductions NetTransport::networkReductions() const {
  NetworkReductions common = collnetUse(plan_).channels == 0 ? 0 : ~NetworkReductions(0);
  for (const Group& group : groups_) {
    if (group.own != nullptr) common &= group.own->reductions();
  }
  return common;
}

void NetTransport::useNetworkReductions(NetworkReductions agreed) {
  for (const Group& group : groups_) {
    if (group.own != nullptr) group.own->use(agreed);
  }
  moveGroup();
}

void NetTransport::moveGroup() {
  bool isNew = false;
  for (const Group& group : groups_) {
    if (group.own != nullptr) isNew = !group.own->watched.exchange(true, std::memory_order_seq_cst) || isNew;
  }
  if (isNew) proxy_.wake();
}

// On the proxy's thread.
Proxy::Work::Outcome NetTransport::advanceGroups() {
  Outcome all{.isWatched = false, .hasMoved = false, .isPolled = false};
  for (Group& group : groups_) {
    if (group.own == nullptr) continue;
    const Outcome one = advance(group);
    all = {.isWatched = all.isWatched || one.isWatched,
           .hasMoved = all.hasMoved || one.hasMoved,
           .isPolled = all.isPolled || one.isPolled};
  }
  return all;
}

Proxy::Work::Outcome NetTransport::advance(Group& group) {
  RailGroup& own = *group.own;
  if (!own.watched.exchange(false, std::memory_order_seq_cst) && !own.hasDeviceNews())
    return {.isWatched = false, .hasMoved = false, .isPolled = false};
  const bool wasWithout = own.hasNone();
  const bool hasMoved = own.advance();
  if (!wasWithout && own.hasNone())
    logInfo(plan_.describe(rank_) + ": no collective network: " + own.why(), Subsystem::net);
  if (own.hasFailed()) return fail(group);
  const bool isBusy = hasMoved || !own.isIdle();
  if (isBusy) own.watched.store(true, std::memory_order_seq_cst);
  if (hasMoved) ring(own_);
  return {.isWatched = isBusy, .hasMoved = hasMoved, .isPolled = isBusy};
}

// The network may notice before this rank hears of it that another member is gone.
Proxy::Work::Outcome NetTransport::fail(Group& group) {
  const uint64_t now = nowNanoseconds();
  if (group.failedAt == 0) group.failedAt = now;
  Status gone = whyGone(group);
  if (gone.ok()) gone = whyLeft(group);
  const bool isJudged = !gone.ok() || now - group.failedAt > kGoodbyeBehindNanoseconds;
  if (isJudged) interrupt_.raise(gone.ok() ? group.own->failure() : gone);
  if (!isJudged) group.own->watched.store(true, std::memory_order_seq_cst);
  return {.isWatched = !isJudged, .hasMoved = isJudged, .isPolled = !isJudged};
}

Status NetTransport::whyGone(const Group& group) const {
  for (const uint32_t member : group.ranks) {
    if (member == rank_) continue;
    const std::optional<PeerState> state = peerStates_.of(member);
    if (state.has_value() && (state->lost || state->result != ncclSuccess)) return lossOf(member, *state);
    const Status why = gonePeers_.why(member);
    if (why.code == ncclRemoteError) return why;
  }
  return {};
}

// What this rank has given the network, no member that has left in order will complete.
Status NetTransport::whyLeft(const Group& group) const {
  for (const uint32_t member : group.ranks) {
    const std::optional<PeerState> state = peerStates_.of(member);
    if (!state.has_value() || state->lost || state->result != ncclSuccess) continue;
    return {ncclInvalidUsage, "the ranks' calls differ: " + plan_.describe(rank_) +
                                  " takes part in a reduction by the network, which " + plan_.describe(member) +
                                  " did not call before ncclCommFinalize"};
  }
  return {};
}

Status NetTransport::whyGroupGone() { return groups_.empty() ? Status() : whyGone(groups_[0]); }

}  // namespace ncclrun
