// NetTransport: what peers say beside their data, who has left, and who is lost.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/variables.h"
#include "net/proxy/goodbye.h"
#include "net/proxy/net_transport.h"
#include "plan/variants.h"

namespace ncclrun {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

}  // namespace

Status NetTransport::silenceTimeout(uint64_t& nanoseconds) {
  constexpr uint32_t kDefaultSeconds = 20, kMaxSeconds = 86'400;
  nanoseconds = kDefaultSeconds * kSecond;
  const std::string_view text = environmentVariable("NCCLRUN_NET_TIMEOUT");
  if (text.empty()) return {};
  uint32_t seconds = 0;
  const auto parsed = std::from_chars(text.begin(), text.end(), seconds);
  if (parsed.ec != std::errc() || parsed.ptr != text.end() || seconds == 0 || seconds > kMaxSeconds) {
    return {ncclInvalidUsage, "NCCLRUN_NET_TIMEOUT is \"" + std::string(text) + "\": it is a number of seconds, 1 to " +
                                  std::to_string(kMaxSeconds)};
  }
  nanoseconds = seconds * kSecond;
  return {};
}

void NetTransport::onOutOfBand() {
  std::vector<Event> events;
  Status status;
  {
    std::lock_guard lock(outOfBandMutex_);
    status = outOfBand_->advance(events);
  }
  if (!status.ok()) interrupt_.raise(status);
  handle(events);
}

uint64_t NetTransport::onTick() {
  std::vector<Event> events;
  {
    std::lock_guard lock(outOfBandMutex_);
    outOfBand_->tick(events);
  }
  handle(events);
  judgeFailures();
  const uint64_t ringAt = ringAt_.load(std::memory_order_relaxed);
  const bool isDue = ringAt != 0 && nowNanoseconds() > ringAt;
  if (isDue) {
    ringAt_.store(0, std::memory_order_relaxed);
    ring(own_);
  }
  return failedSince_.empty() && (ringAt == 0 || isDue) ? ~uint64_t(0) : kGoodbyeBehindNanoseconds / 4;
}

void NetTransport::handle(const std::vector<Event>& events) {
  for (const Event& event : events) {
    if (event.lost) {
      onGone(event.peer, {.lost = true, .result = ncclRemoteError, .sentence = event.why, .since = nowNanoseconds()});
    } else {
      onMessage(event.peer, event.message);
    }
  }
}

void NetTransport::onMessage(uint32_t peer, const net::OobMessage& message) {
  if (message.kind == net::OobKind::goodbye || message.kind == net::OobKind::stop) {
    onGone(peer, {.lost = false,
                  .result = ncclResult_t(message.result),
                  .sentence = message.sentence.data(),
                  .since = nowNanoseconds(),
                  .collectives = message.collectives,
                  .isLeaving = message.kind == net::OobKind::stop});
  }
  onEndMessage(peer, message);
  if (message.kind == net::OobKind::introduction) {
    if (!usesOtherNetwork(peer, message.network.data())) return;
    std::lock_guard lock(mutex_);
    foreign_.insert(peer);
    return;
  }
  if (isForeign(peer)) return;
  if (message.kind == net::OobKind::groupOffer || message.kind == net::OobKind::noGroup)
    return onGroupMessage(peer, message);
  if (message.kind == net::OobKind::request) {
    // Kernels' connections are made at both ends by themselves, and their memory not on this thread.
    if (device_ == nullptr && planned(peer, message.channel)) find(peer, message.channel, false);
    return;
  }
  if (message.kind == net::OobKind::call && device_ != nullptr) {
    device_->onCall(peer, std::bit_cast<StepCall>(message.call));
  }
  if (message.kind != net::OobKind::offer) return;
  NetEndpoint* sender = nullptr;
  {
    std::lock_guard lock(mutex_);
    const auto found = endpoints_.find({peer, message.channel, true});
    if (found != endpoints_.end()) {
      sender = found->second.get();
    } else {
      offers_[{peer, message.channel}] = message.handle;
    }
  }
  if (sender == nullptr) return;
  sender->connection().connectTo(message.handle);
  proxy_.wake();
}

void NetTransport::sendCall(uint32_t peer, const StepCall& call) {
  static_assert(sizeof call == net::kCallBytes);
  send(peer, {.kind = net::OobKind::call, .call = std::bit_cast<std::array<std::byte, net::kCallBytes>>(call)});
}

bool NetTransport::isForeign(uint32_t peer) const {
  std::lock_guard lock(mutex_);
  return foreign_.contains(peer);
}

bool NetTransport::usesOtherNetwork(uint32_t peer, const std::string& theirs) {
  const std::string ours = network_->name();
  if (theirs == ours.substr(0, std::tuple_size_v<decltype(net::OobMessage::network)> - 1)) return false;
  const Status differ{ncclInvalidUsage,
                      "the hosts' networks differ: " + plan_.describe(rank_) + " uses " + ours + ", and " +
                          plan_.describe(peer) + " uses " + theirs +
                          ". Give all hosts the same NCCL_NET and NCCL_NET_PLUGIN, and the same plugin"};
  interrupt_.raise(differ);
  send(peer, goodbyeFor(interrupt_));
  return true;
}

// An aborting peer may end its connection in the middle of a slot, which a receiver may not need: it fails when it
// needs the connection. A sender fails at once, because what it has sent may be lost.
void NetTransport::onGone(uint32_t peer, PeerState state) {
  if (!peerStates_.set(peer, state)) return;
  for (NetEndpoint& each : list_) {
    if (each.facts().peer != peer || !each.facts().sends) continue;
    NetConnection& connection = each.connection();
    // What another thread has sent just now is on its way, and may be what the peer left with.
    const bool isIdle = connection.isIdle() || (!network_->threadBound() && connection.settle());
    // Of rings all are needed; two ranks' own connection perhaps is not.
    const bool isMissing = !connection.isOpen() && !isPair(each.facts().channel);
    if (state.lost || !isIdle || isMissing) failSender(each, state);
  }
  if (device_ != nullptr) notifyDevice(peer, state);
  // Wakes a block that sleeps until the next slot, which will not come; once more when all that was on its way has
  // come.
  ringAt_.store(nowNanoseconds() + kGoodbyeBehindNanoseconds, std::memory_order_relaxed);
  ring(own_);
}

void NetTransport::notifyDevice(uint32_t peer, const PeerState& state) {
  if (!state.lost && state.result == ncclSuccess) return device_->onLeft(peer, state.collectives);
  if (state.lost || state.result == ncclInvalidUsage) return device_->onGone(peer, lossOf(peer, state));
  device_->onAborted(peer, lossOf(peer, state));
}

void NetTransport::failSender(const NetEndpoint& endpoint, const PeerState& state) {
  if (!state.lost && state.result == ncclInvalidUsage) return interrupt_.raise(statusOf(endpoint, state));
  PeerState loss = state;
  loss.lost = true;
  if (!state.lost && state.sentence.empty())
    loss.sentence = "it has left the communicator without receiving all that this rank sent";
  interrupt_.raise(statusOf(endpoint, loss), endpoint.facts().peer, FailureScope::alone);
}

Status NetTransport::statusOf(const NetEndpoint& endpoint, const PeerState& state) const {
  const auto& facts = endpoint.facts();
  if (!state.lost && state.result == ncclSuccess) return endpoint.peerLeftInOrder();
  const bool isOfRing = state.lost && !isPair(facts.channel);
  return lossOf(facts.peer, state, isOfRing ? " (ring of channel " + std::to_string(facts.channel) + ")" : "");
}

Status NetTransport::lossOf(uint32_t peer, const PeerState& state, const std::string& where) const {
  const std::string name = plan_.describe(peer);
  if (state.lost) return {ncclRemoteError, "lost the connection with " + name + where + ": " + state.sentence};
  if (state.result == ncclInvalidUsage) return {ncclInvalidUsage, state.sentence};
  const Status why = gonePeers_.why(peer);  // the agent's report may have more detail
  if (!why.ok()) return why;
  return {ncclRemoteError,
          state.sentence.empty() ? name + " left the communicator after an error, or aborted it" : state.sentence};
}

void NetTransport::lookAt(uint32_t peer) {
  std::vector<Event> events;
  {
    std::lock_guard lock(outOfBandMutex_);
    outOfBand_->receive(peer, events);
  }
  handle(events);
}

Status NetTransport::whyGone(NetEndpoint& endpoint) {
  NetConnection& connection = endpoint.connection();
  const auto& facts = endpoint.facts();
  if (facts.sends && connection.isOpen() && connection.isIdle() && endpoint.isDueToLook()) {
    lookAt(facts.peer);  // or this rank would send to nobody
  }
  const std::optional<PeerState> state = peerStates_.of(facts.peer);
  if (state.has_value() && isOver(endpoint, *state)) return statusOf(endpoint, *state);
  // A rank that left in order says goodbye after its data; of one that failed the agent may know first.
  const Status why = gonePeers_.why(facts.peer);
  return !connection.isOpen() || why.code == ncclRemoteError ? why : Status{};
}

// What the peer sent before may still be on its way: its last message, or the end of the connection, is behind that.
bool NetTransport::isOver(NetEndpoint& endpoint, const PeerState& state) {
  NetConnection& connection = endpoint.connection();
  const auto& facts = endpoint.facts();
  if (facts.sends || connection.hasEnded() || connection.hasFailed()) return true;
  const uint64_t age = nowNanoseconds() - state.since;
  if (!state.lost && endpoint.isEndExpected()) return age > timeoutNanoseconds_;
  const bool isLate = age > kGoodbyeBehindNanoseconds;
  if (connection.isOpen()) {
    // A peer that was lost, or that aborted on a network that does not tell the end of a connection, sends neither.
    return isLate && (state.lost || (network_->threadBound() && state.result != ncclSuccess));
  }
  if (!state.lost) return true;  // it has sent nothing
  // It may have connected and sent everything before this side has accepted.
  if (network_->threadBound()) return isLate;
  connection.settle();
  return !connection.isOpen();
}

void NetTransport::judgeFailures() {
  for (NetEndpoint& each : list_) {
    if (!each.connection().hasFailed()) continue;
    const uint32_t peer = each.facts().peer;
    const uint64_t now = nowNanoseconds();
    if (peerStates_.of(peer).has_value()) {
      failedSince_.erase(&each);
      continue;
    }
    const Status why = each.connection().failure();
    const uint64_t since = failedSince_.try_emplace(&each, now).first->second;
    if (why.code != ncclRemoteError) {
      interrupt_.raise({why.code, "the connection with " + each.facts().peerName + " failed: " + why.sentence});
    } else if (now - since > kGoodbyeBehindNanoseconds) {
      onGone(peer, {.lost = true, .result = ncclRemoteError, .sentence = why.sentence, .since = now});
      // The peer may wait at its end of the connection, which still looks whole there.
      net::OobMessage broken{.kind = net::OobKind::goodbye, .result = ncclRemoteError};
      (plan_.describe(rank_) + " lost its connection with this rank: " + why.sentence)
          .copy(broken.sentence.data(), broken.sentence.size() - 1);
      send(peer, broken);
    }
  }
}

// --- The plan

uint32_t NetTransport::maxConnections() const {
  const auto& header = plan_.header();
  const bool localToo = isNetwork(header.sameHostTransport);
  const uint32_t peers = header.ranks - (localToo ? 1 : header.localRanks);
  const uint32_t sockets = header.sockets + (header.socketThreads > 0 ? 1 : 0);
  if (device_ != nullptr) {
    uint32_t channels = 2 * header.channels;  // of the rings
    for (uint32_t peer = 0; peer < header.ranks; peer++) {
      if (!plan_.sameHost(peer)) channels += 2 * plan_.channelsBetween(rank_, peer);
    }
    return channels * sockets + peers;
  }
  uint32_t count = (2 * sockets + 1) * peers;  // each way, and beside the data
  const auto local = plan_.local(plan_.peer(rank_).localIndex);
  for (uint32_t i = 0; i < local.edgeCount; i++) {
    if (isNetwork(plan_.edge(local.firstEdge + i).transport)) count += sockets;
  }
  return count;
}

bool NetTransport::planned(uint32_t from, uint32_t channel) const {
  const auto& header = plan_.header();
  if (from == rank_) return false;
  if (isPair(channel)) {
    const uint8_t transport = plan_.sameHost(from) ? header.sameHostTransport : header.otherHostTransport;
    return isNetwork(transport);
  }
  const std::optional<plan::EdgeRecord> edge = ringEdge(channel, false);
  return edge.has_value() && edge->peer == from && isNetwork(edge->transport);
}

}  // namespace ncclrun
