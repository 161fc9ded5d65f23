// NetTransport: the group of this rank's rail, which the network reduces.
#include <cstring>
#include <utility>

#include "aggregator/aggregator.h"
#include "base/debug.h"
#include "net/proxy/choose_network.h"
#include "net/proxy/net_transport.h"
#include "plan/rail_shape.h"
#include "plan/variants.h"

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

Status NetTransport::makeGroup() {
  if (device_ != nullptr || !choosesCollnet(plan_)) return {};
  const auto& header = plan_.header();
  const RailPosition place = railPosition(plan_, rank_);
  for (uint32_t host = 0; host < place.hosts; host++) groupRanks_.push_back(plan_.member(host, place.local));
  const uint32_t nic = plan_.pairNic(rank_) == plan::kNoNic ? 0 : plan_.pairNic(rank_);
  std::optional<aggregator::NetworkConfig> aggregators;
  NCCLRUN_TRY(aggregatorsOf(plan_, nic, timeoutNanoseconds_, aggregators));
  return RailGroup::make({.network = *network_,
                          .aggregators = std::move(aggregators),
                          .device = nic,
                          .index = place.host,
                          .members = place.hosts,
                          .steps = header.pairSteps,
                          .stepBytes = header.pairStepBytes,
                          .offer = [this](const net::Handle* handle) { offerGroup(handle); }},
                         group_);
}

void NetTransport::offerGroup(const net::Handle* handle) {
  net::OobMessage message{.kind = handle == nullptr ? net::OobKind::noGroup : net::OobKind::groupOffer};
  if (handle != nullptr) message.handle = *handle;
  for (const uint32_t member : groupRanks_) {
    if (member != rank_) send(member, message);
  }
}

void NetTransport::onGroupMessage(uint32_t peer, const net::OobMessage& message) {
  if (group_ == nullptr) return;
  for (uint32_t member = 0; member < groupRanks_.size(); member++) {
    if (groupRanks_[member] != peer) continue;
    group_->onOffer(member, message.kind == net::OobKind::groupOffer ? &message.handle : nullptr);
    moveGroup();
  }
}

Endpoint* NetTransport::group(bool sends) {
  if (group_ == nullptr) return nullptr;
  std::lock_guard lock(mutex_);
  std::unique_ptr<RailGroupEndpoint>& end = sends ? groupSends_ : groupReceives_;
  if (end == nullptr) {
    const uint32_t next = groupRanks_[(plan_.peer(rank_).host + 1) % groupRanks_.size()];
    const Endpoint::Facts facts{.peer = next,
                                .channel = kPairChannel,
                                .sends = sends,
                                .transport = transport_,
                                .steps = plan_.header().pairSteps,
                                .stepBytes = plan_.header().pairStepBytes,
                                .peerName = "the collective network " + group_->networkName()};
    RailGroupOwner& owner = *this;
    end = std::make_unique<RailGroupEndpoint>(facts, current_, sends ? group_->sends() : group_->receives(),
                                              group_->stride(), owner);
  }
  return end.get();
}

NetworkReductions NetTransport::networkReductions() const { return group_ == nullptr ? 0 : group_->reductions(); }

void NetTransport::useNetworkReductions(NetworkReductions agreed) {
  if (group_ == nullptr) return;
  group_->use(agreed);
  moveGroup();
}

void NetTransport::moveGroup() {
  if (!group_->watched.exchange(true, std::memory_order_seq_cst)) proxy_.wake();
}

// On the proxy's thread.
Proxy::Work::Outcome NetTransport::advanceGroup() {
  if (group_ == nullptr || !group_->watched.exchange(false, std::memory_order_seq_cst))
    return {.isWatched = false, .hasMoved = false, .isPolled = false};
  const bool wasWithout = group_->hasNone();
  const bool hasMoved = group_->advance();
  if (!wasWithout && group_->hasNone())
    logInfo(current_.rank + ": no collective network: " + group_->why(), Subsystem::net);
  if (group_->hasFailed()) {
    interrupt_.raise(group_->failure());
    return {.isWatched = false, .hasMoved = true, .isPolled = false};
  }
  const bool isBusy = hasMoved || !group_->isIdle();
  if (isBusy) group_->watched.store(true, std::memory_order_seq_cst);
  if (hasMoved) ring(own_);
  return {.isWatched = isBusy, .hasMoved = hasMoved, .isPolled = isBusy};
}

Status NetTransport::whyGroupGone() {
  for (const uint32_t member : groupRanks_) {
    if (member == rank_) continue;
    const std::optional<PeerState> state = peerStates_.of(member);
    if (state.has_value() && (state->lost || state->result != ncclSuccess)) return lossOf(member, *state);
    const Status why = gonePeers_.why(member);
    if (why.code == ncclRemoteError) return why;
  }
  return {};
}

}  // namespace ncclrun
