#include "net/proxy/net_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "net/proxy/choose_network.h"

namespace ncclrun {
namespace {

constexpr uint64_t kPauseNanoseconds = 1'000'000;
// A thread that sleeps takes tens of microseconds to come, as long as a small operation; the next one often follows.
constexpr uint64_t kLingerNanoseconds = 500'000;

}  // namespace

NetTransport::NetTransport(const PlanView& plan, uint32_t rank, const OwnCall& current, Interrupt& interrupt,
                           Doorbell& own, const GonePeers& gonePeers, int listenFd, DeviceRings* device,
                           std::shared_ptr<const RecorderClaim> recorder)
    : plan_(plan),
      rank_(rank),
      current_(current),
      interrupt_(interrupt),
      own_(own),
      gonePeers_(gonePeers),
      device_(device),
      recorder_(std::move(recorder)),
      listening_(listenFd) {}

NetTransport::~NetTransport() { proxy_.end(); }

// --- Connecting

Status NetTransport::startNetworks() {
  const auto& header = plan_.header();
  net::Token token;
  static_assert(sizeof token == sizeof header.token);
  std::memcpy(token.data(), header.token, sizeof token);
  const std::string address(plan_.hostAddress(header.hostIndex));
  NCCLRUN_TRY(net::chooseNetwork(plan_, token, network_));
  transport_ = net::transportOf(*network_);
  return net::OobNetwork::make({.token = token,
                                .rank = rank_,
                                .ranks = header.ranks,
                                .address = address,
                                .listening = std::move(listening_),
                                .addressOf = [this](uint32_t peer, net::Address& out) { return addressOf(peer, out); },
                                .network = network_->name(),
                                .timeoutNanoseconds = timeoutNanoseconds_},
                               outOfBand_);
}

Status NetTransport::start() {
  NCCLRUN_TRY(silenceTimeout(timeoutNanoseconds_));
  prepareOpenFiles(maxConnections());
  NCCLRUN_TRY(startNetworks());
  NCCLRUN_TRY(makeGroups());
  NCCLRUN_TRY(proxy_.start({.outOfBand = outOfBand_->eventDescriptor(),
                            .network = network_->eventDescriptor(),
                            .tickNanoseconds = outOfBand_->tickNanoseconds(),
                            .pauseNanoseconds = kPauseNanoseconds,
                            .lingerNanoseconds = device_ == nullptr ? 0 : kLingerNanoseconds}));
  moveGroup();
  return {};
}

Status NetTransport::addressOf(uint32_t rank, net::Address& out) const {
  const auto record = plan_.peer(rank);
  const std::string text(plan_.hostAddress(record.host));
  std::optional<net::Address> address = net::parseAddress(text);
  if (!address.has_value() || record.listenPort == 0) {
    return {ncclInternalError, "the plan gives " + plan_.describe(rank) + " no address to connect to (\"" + text +
                                   "\" port " + std::to_string(record.listenPort) + ")"};
  }
  address->setPort(uint16_t(record.listenPort));
  out = *address;
  return {};
}

Endpoint* NetTransport::endpoint(uint32_t peer, uint32_t channel, bool sends) { return find(peer, channel, sends); }

NetEndpoint* NetTransport::find(uint32_t peer, uint32_t channel, bool sends) {
  NetEndpoint* made = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto& endpoint = endpoints_[{peer, channel, sends}];
    if (endpoint != nullptr) return endpoint.get();
    if (Status status = make({peer, channel, sends}, endpoint); !status.ok()) {
      interrupt_.raise(status);
      endpoints_.erase({peer, channel, sends});
      return nullptr;
    }
    made = endpoint.get();
    list_.add(*made);
  }
  introduce(*made);
  return made;
}

Status NetTransport::make(const Key& key, std::unique_ptr<NetEndpoint>& out) {
  const auto [peer, channel, sends] = key;
  const auto& header = plan_.header();
  const std::optional<plan::EdgeRecord> edge = ringEdge(channel, sends);
  const auto slots = plan_.slots();
  uint32_t steps = edge.has_value() ? edge->steps : header.pairSteps;
  uint32_t stepBytes = edge.has_value() ? edge->stepBytes : header.pairStepBytes;
  if (device_ != nullptr) {
    steps = isPair(channel) ? slots.pairSteps : slots.ringSteps;
    stepBytes = isPair(channel) ? pairStepBytes(slots, channel - slots.channels) : slots.ringStepBytes;
  }
  const Endpoint::Facts facts{.peer = peer,
                              .channel = channel,
                              .sends = sends,
                              .transport = transport_,
                              .steps = steps,
                              .stepBytes = stepBytes,
                              .peerName = plan_.describe(peer)};
  std::unique_ptr<NetConnection> connection;
  NCCLRUN_TRY(NetConnection::make(
      {.network = *network_,
       .device = deviceOf(peer, channel, sends),
       .sends = sends,
       .steps = facts.steps,
       .stepBytes = facts.stepBytes,
       .peerName = facts.peerName,
       .busy = busy_,
       .ring = device_ == nullptr ? std::optional<DeviceRing>() : device_->ringOf(peer, channel, sends),
       .peer = peer,
       .channel = channel,
       .recorder = recorder_},
      connection));
  NetEndpointOwner& owner = *this;
  out = std::make_unique<NetEndpoint>(facts, current_, std::move(connection), owner);
  return {};
}

uint32_t NetTransport::deviceOf(uint32_t peer, uint32_t channel, bool sends) const {
  const std::optional<plan::EdgeRecord> edge = ringEdge(channel, sends);
  // All hosts have the same number of NICs, so both ends take the same one.
  const uint32_t receiver = sends ? peer : rank_;
  const uint32_t ofPair = device_ == nullptr ? plan_.pairNic(receiver) : plan_.pairNic(receiver, channel);
  const uint32_t nic = edge.has_value() ? edge->nic : ofPair;
  if (nic == plan::kNoNic) return 0;
  // A plugin may have fewer devices than the plan has NICs.
  return nic % uint32_t(network_->devices().size());
}

std::optional<plan::EdgeRecord> NetTransport::ringEdge(uint32_t channel, bool sends) const {
  const auto local = plan_.local(plan_.peer(rank_).localIndex);
  for (uint32_t i = 0; i < local.edgeCount && !isPair(channel); i++) {
    const auto edge = plan_.edge(local.firstEdge + i);
    if (edge.kind == uint8_t(plan::EdgeKind::ring) && edge.channel == channel && bool(edge.sends) == sends) return edge;
  }
  return {};
}

void NetTransport::introduce(NetEndpoint& endpoint) {
  const auto& facts = endpoint.facts();
  net::OobMessage message{.channel = facts.channel};
  if (!facts.sends) {
    message.kind = net::OobKind::offer;
    if (const Status status = endpoint.connection().listen(message.handle); !status.ok())
      return interrupt_.raise(status);
    endpoint.connection().watched.store(true, std::memory_order_seq_cst);
    send(facts.peer, message);
    return proxy_.arm();
  }
  std::optional<net::Handle> offer;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = offers_.find({facts.peer, facts.channel}); found != offers_.end()) {
      offer = found->second;
      offers_.erase(found);
    }
  }
  if (offer.has_value()) {
    endpoint.connection().connectTo(*offer);
    return proxy_.wake();
  }
  message.kind = net::OobKind::request;
  send(facts.peer, message);
}

void NetTransport::send(uint32_t peer, const net::OobMessage& message) {
  std::lock_guard lock(outOfBandMutex_);
  outOfBand_->send(peer, message);
}

Status NetTransport::connected() const {
  std::lock_guard lock(mutex_);
  for (const auto& [key, endpoint] : endpoints_) {
    const auto& [peer, channel, sends] = key;
    if (!endpoint->connection().isOpen() && (!isPair(channel) || sends)) return {ncclInProgress, "connecting"};
  }
  for (const Group& group : groups_) {
    if (group.own != nullptr && !group.own->isDecided()) return {ncclInProgress, "connecting"};
  }
  return {};
}

// --- Moving

void NetTransport::moveFor(NetEndpoint& endpoint) {
  NetConnection& own = endpoint.connection();
  if (network_->threadBound()) {
    if (!own.watched.exchange(true, std::memory_order_seq_cst)) proxy_.wake();
    return;
  }
  advance(endpoint, NetConnection::Extent::oneStep);
  if (own.hasFailed()) proxy_.wake();
  if (own.hasEnded() && !endpoint.isEndTaken.load(std::memory_order_relaxed)) {
    own.watched.store(true, std::memory_order_seq_cst);
    proxy_.wake();  // confirms it
  }
  if (busy_.load(std::memory_order_relaxed) <= (own.isIdle() ? 0 : 1)) return;
  for (NetEndpoint& other : list_) {
    if (&other != &endpoint && !other.connection().isIdle()) other.connection().advance();
  }
}

bool NetTransport::advance(NetEndpoint& endpoint, NetConnection::Extent extent) {
  NetConnection& connection = endpoint.connection();
  const bool wasOpen = connection.isOpen();
  const bool changed = connection.advance(extent);
  if (wasOpen || !connection.isOpen()) return changed;
  return pairIfOpen(endpoint) || changed;
}

// Whichever direction opens last finds the other one open: both threads hold the mutex in between.
bool NetTransport::pairIfOpen(NetEndpoint& endpoint) {
  const auto& facts = endpoint.facts();
  NetEndpoint* other = nullptr;
  {
    std::lock_guard lock(mutex_);
    const auto found = endpoints_.find({facts.peer, facts.channel, !facts.sends});
    if (found == endpoints_.end() || !found->second->connection().isOpen()) return false;
    other = found->second.get();
    if (endpoint.isPaired.exchange(true) || other->isPaired.exchange(true)) return false;
  }
  NetEndpoint& sends = facts.sends ? endpoint : *other;
  NetEndpoint& receives = facts.sends ? *other : endpoint;
  return NetConnection::pair(sends.connection(), receives.connection());
}

void NetTransport::watch(NetEndpoint& endpoint) {
  endpoint.connection().watched.store(true, std::memory_order_seq_cst);
  proxy_.arm();
}

void NetTransport::watchAll() {
  for (NetEndpoint& each : list_) {
    if (!each.facts().sends && each.unread() == nullptr)
      each.connection().watched.store(true, std::memory_order_seq_cst);
  }
  proxy_.wake();
}

void NetTransport::handOver() {
  bool any = false;
  for (NetEndpoint& each : list_) {
    if (each.connection().isIdle()) continue;
    each.connection().watched.store(true, std::memory_order_seq_cst);
    any = true;
  }
  if (any) proxy_.wake();
}

void NetTransport::endLaunch() {
  isLaunched_.store(false, std::memory_order_seq_cst);
  handOver();
}

bool NetTransport::idle() const {
  for (NetEndpoint& each : list_) {
    if (!each.connection().isIdle()) return false;
  }
  return std::ranges::all_of(groups_, [](const Group& one) { return one.own == nullptr || one.own->isIdle(); });
}

void NetTransport::checkPeers() {
  handOver();
  for (NetEndpoint& each : list_) {
    if (each.facts().sends) continue;
    const StepCall* theirs = each.unread();
    if (theirs == nullptr || !isLeftOver(*theirs, current_.call)) continue;
    interrupt_.raise({ncclInvalidUsage, describeMismatch(*theirs, each.facts().peerName, current_)});
  }
}

bool NetTransport::isPair(uint32_t channel) const {
  return device_ == nullptr ? channel == kPairChannel : channel >= plan_.header().channels;
}

void NetTransport::beginLaunch() {
  isLaunched_.store(true, std::memory_order_seq_cst);
  if (device_ != nullptr) proxy_.wake();
}

Proxy::Work::Outcome NetTransport::onNetwork(bool fromNetwork) {
  if (device_ != nullptr) return moveDevice(network_->clearEvents() || fromNetwork);
  if (fromNetwork) network_->clearEvents();
  bool isWatched = false, hasChanged = false;
  for (NetEndpoint& each : list_) {
    NetConnection& connection = each.connection();
    if (!connection.watched.exchange(false, std::memory_order_seq_cst)) continue;
    const bool changed = advance(each, NetConnection::Extent::all);
    hasChanged = hasChanged || changed;
    confirmEnd(each);
    if (each.isStopped) hasSentAll(each);
    if (connection.hasFailed() || (connection.hasEnded() && !isEnding(each))) continue;
    // A block that still waits for more says so again.
    const bool waits = !each.facts().sends && !changed && isLaunched_.load(std::memory_order_seq_cst);
    if (connection.isOpen() && connection.isIdle() && !waits && !each.isEndExpected() && !isEnding(each)) continue;
    connection.watched.store(true, std::memory_order_seq_cst);
    isWatched = true;
  }
  judgeFailures();
  if (hasChanged) ring(own_);
  const Outcome ofGroups = advanceGroups();
  return {.isWatched = isWatched || ofGroups.isWatched,
          .hasMoved = hasChanged || ofGroups.hasMoved,
          .isPolled = ofGroups.isPolled};
}

// A message for a peer that has left in order would be taken for delivered once the system has it. The peer's goodbye
// is here before it, but perhaps not read.
bool NetTransport::isForNobody(NetEndpoint& endpoint) {
  const auto& facts = endpoint.facts();
  if (!facts.sends || !isPair(facts.channel) || !endpoint.connection().isIdle()) return false;
  lookAt(facts.peer);
  const std::optional<PeerState> state = peerStates_.of(facts.peer);
  if (!state.has_value() || state->lost || state->result != ncclSuccess) return false;
  interrupt_.raise(statusOf(endpoint, *state), facts.peer, FailureScope::alone);
  return true;
}

// Kernels tell nobody what they have posted or freed, so all counters are looked at as long as kernels may run.
Proxy::Work::Outcome NetTransport::moveDevice(bool hasEvents) {
  const bool areActive = device_->areActive();  // before: what ended kernels have posted is seen below
  bool hasMoved = false;
  for (NetEndpoint& each : list_) {
    NetConnection& connection = each.connection();
    const bool isWatched = connection.watched.load(std::memory_order_relaxed) &&
                           connection.watched.exchange(false, std::memory_order_seq_cst);
    const bool hasNews = connection.hasDeviceNews();
    if (!hasEvents && !isWatched && !hasNews) continue;
    if (hasNews && isForNobody(each)) continue;
    hasMoved = advance(each, NetConnection::Extent::all) || hasMoved;
    confirmEnd(each);
    if (each.isStopped) hasSentAll(each);
  }
  judgeFailures();
  const Outcome ofGroups = advanceGroups();
  hasMoved = hasMoved || ofGroups.hasMoved;
  return {.isWatched = true, .hasMoved = hasMoved || hasEvents, .isPolled = hasMoved || areActive || ofGroups.isPolled};
}

}  // namespace ncclrun
