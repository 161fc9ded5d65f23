// NetTransport: how this rank leaves the communicator, and what it owes its peers before.
#include <poll.h>

#include <array>
#include <utility>

#include "base/clock.h"
#include "net/proxy/goodbye.h"
#include "net/proxy/net_transport.h"

namespace ncclrun {
namespace {

// One timeout for all peers of a rank that leaves. A host that is silent for longer is lost anyway.
constexpr uint64_t kGoodbyeTimeoutNanoseconds = 10'000'000'000;
// For peers that are to complete this rank's receives: their proxies do so at once, unless they are stopped or starved,
// or their network is slow.
constexpr uint64_t kDrainTimeoutNanoseconds = 5'000'000'000;
// How often a wait for room in a socket checks the interrupt.
constexpr int kInterruptMs = 20;

}  // namespace

void NetTransport::onEndMessage(uint32_t peer, const net::OobMessage& message) {
  using net::OobKind;
  if (message.kind != OobKind::end && message.kind != OobKind::endTaken && message.kind != OobKind::stop) return;
  const bool isSender = message.kind != OobKind::end;
  for (NetEndpoint& each : list_) {
    if (each.facts().peer != peer || each.facts().channel != message.channel || each.facts().sends != isSender)
      continue;
    if (message.kind == OobKind::end) {
      each.expectEnd();
    } else if (message.kind == OobKind::stop) {
      each.isStopped = true;
      each.connection().watched.store(true, std::memory_order_seq_cst);
    } else if (message.openReceives > 0) {
      each.connection().fill(message.openReceives);
    } else {
      each.isEndTaken = true;
    }
    proxy_.wake();
  }
}

void NetTransport::confirmEnd(NetEndpoint& endpoint) {
  if (endpoint.facts().sends || endpoint.isEndTaken || !endpoint.connection().hasEnded()) return;
  const uint64_t open = network_->deliversAfterClose() ? 0 : endpoint.connection().openReceives();
  if (open > 0 && std::exchange(endpoint.isOpenSent, true)) return;
  if (open == 0) endpoint.isEndTaken = true;
  send(endpoint.facts().peer,
       {.kind = net::OobKind::endTaken, .channel = endpoint.facts().channel, .openReceives = uint32_t(open)});
}

bool NetTransport::isEnding(const NetEndpoint& endpoint) const {
  if (network_->deliversAfterClose() || endpoint.isEndTaken || endpoint.connection().hasFailed()) return false;
  return endpoint.facts().sends ? endpoint.isStopped : endpoint.connection().hasEnded();
}

// Where the network may drop what is on its way when the sender closes, the receiver confirms the last message.
bool NetTransport::hasSentAll(NetEndpoint& endpoint) {
  NetConnection& connection = endpoint.connection();
  const auto& facts = endpoint.facts();
  if (!facts.sends) {
    connection.advance();
    confirmEnd(endpoint);
    return true;
  }
  if (!connection.sendEnd()) return false;
  if (!connection.hasEnded() || endpoint.isEndTaken) return true;
  const bool isAwaited = endpoint.isStopped && isDraining_;  // by a peer that has all but left
  if (!isAwaited && peerStates_.hasGone(facts.peer)) return true;
  if (!std::exchange(endpoint.isEndSent, true)) send(facts.peer, {.kind = net::OobKind::end, .channel = facts.channel});
  return network_->deliversAfterClose();
}

// Some networks do not take it well when a connection is closed under an open request (plugins). A peer that does not
// leave itself has to be asked for its last message.
bool NetTransport::isDrained(NetEndpoint& endpoint) {
  const NetConnection& connection = endpoint.connection();
  const auto& facts = endpoint.facts();
  if (facts.sends || network_->deliversAfterClose() || endpoint.isEndTaken) return true;
  if (!connection.isOpen() || connection.hasFailed() || peerStates_.hasGone(facts.peer)) return true;
  if (std::exchange(endpoint.isStopSent, true)) return false;
  net::OobMessage stop = ownGoodbye();
  stop.kind = net::OobKind::stop;
  stop.channel = facts.channel;
  send(facts.peer, stop);
  return false;
}

net::OobMessage NetTransport::ownGoodbye() const {
  net::OobMessage goodbye = goodbyeFor(interrupt_);
  goodbye.collectives = collectives_.load(std::memory_order_relaxed);
  return goodbye;
}

// A peer takes a connection that ends without a goodbye for a death of this rank. A slow peer has not made room for
// everything yet.
void NetTransport::sendGoodbye() {
  const uint64_t begun = nowNanoseconds();
  uint64_t sentAt = 0;
  bool isGoodbyeSent = false;
  for (;;) {
    takeLastMessages();
    const uint64_t now = nowNanoseconds();
    bool isSent = true;
    for (NetEndpoint& each : list_) isSent = hasSentAll(each) && isSent;
    if (isSent && sentAt == 0) sentAt = now;
    isDraining_ = sentAt == 0 || now - sentAt < kDrainTimeoutNanoseconds;
    for (NetEndpoint& each : list_) isSent = (sentAt == 0 || !isDraining_ || isDrained(each)) && isSent;
    const bool isLast = interrupt_.raised() || now - begun > kGoodbyeTimeoutNanoseconds;
    {
      std::lock_guard lock(outOfBandMutex_);
      if ((isSent || isLast) && !std::exchange(isGoodbyeSent, true)) outOfBand_->sendToAll(ownGoodbye());
      if (isLast || (isGoodbyeSent && !outOfBand_->hasUnsent())) return;
    }
    std::array<pollfd, 2> events{{{.fd = outOfBand_->eventDescriptor(), .events = POLLIN, .revents = 0},
                                  {.fd = network_->eventDescriptor(), .events = POLLIN, .revents = 0}}};
    network_->clearEvents();
    poll(events.data(), events.size(), network_->eventDescriptor() < 0 ? 1 : kInterruptMs);
  }
}

// This rank reports no peer that leaves or is lost meanwhile.
void NetTransport::takeLastMessages() {
  std::vector<Event> events;
  {
    std::lock_guard lock(outOfBandMutex_);
    outOfBand_->advance(events);
  }
  for (const Event& event : events) {
    const bool isStop = !event.lost && event.message.kind == net::OobKind::stop;
    if (event.lost || isStop || event.message.kind == net::OobKind::goodbye)
      peerStates_.set(event.peer,
                      {.lost = event.lost, .sentence = event.why, .since = nowNanoseconds(), .isLeaving = isStop});
    if (!event.lost) onEndMessage(event.peer, event.message);
  }
}

void NetTransport::onEnd() {
  sendGoodbye();
  for (NetEndpoint& each : list_) each.connection().close();
  for (const Group& group : groups_) {
    if (group.own != nullptr) group.own->close();
  }
}

}  // namespace ncclrun
