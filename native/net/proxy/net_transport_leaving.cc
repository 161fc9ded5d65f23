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
// How often a wait for room in a socket checks the interrupt.
constexpr int kInterruptMs = 20;

}  // namespace

void NetTransport::onEndMessage(uint32_t peer, const net::OobMessage& message) {
  if (message.kind != net::OobKind::end && message.kind != net::OobKind::endTaken) return;
  const bool isSender = message.kind == net::OobKind::endTaken;
  for (NetEndpoint& each : list_) {
    if (each.facts().peer != peer || each.facts().channel != message.channel || each.facts().sends != isSender)
      continue;
    if (isSender) {
      each.isEndTaken = true;
    } else {
      each.expectEnd();
      proxy_.wake();
    }
  }
}

void NetTransport::confirmEnd(NetEndpoint& endpoint) {
  if (endpoint.facts().sends || endpoint.isEndTaken || !endpoint.connection().hasEnded()) return;
  endpoint.isEndTaken = true;
  send(endpoint.facts().peer, {.kind = net::OobKind::endTaken, .channel = endpoint.facts().channel});
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
  if (!connection.hasEnded() || endpoint.isEndTaken || peerStates_.of(facts.peer).has_value()) return true;
  if (!std::exchange(endpoint.isEndSent, true)) send(facts.peer, {.kind = net::OobKind::end, .channel = facts.channel});
  return network_->deliversAfterClose();
}

// A peer takes a connection that ends without a goodbye for a death of this rank. A slow peer has not made room for
// everything yet.
void NetTransport::sendGoodbye() {
  const uint64_t deadline = nowNanoseconds() + kGoodbyeTimeoutNanoseconds;
  bool isGoodbyeSent = false;
  for (;;) {
    takeLastMessages();
    bool isSent = true;
    for (NetEndpoint& each : list_) isSent = hasSentAll(each) && isSent;
    const bool isLast = interrupt_.raised() || nowNanoseconds() > deadline;
    {
      std::lock_guard lock(outOfBandMutex_);
      if ((isSent || isLast) && !std::exchange(isGoodbyeSent, true)) {
        net::OobMessage goodbye = goodbyeFor(interrupt_);
        goodbye.collectives = collectives_.load(std::memory_order_relaxed);
        outOfBand_->sendToAll(goodbye);
      }
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
    if (event.lost || event.message.kind == net::OobKind::goodbye)
      peerStates_.set(event.peer, {.lost = event.lost, .sentence = event.why, .since = nowNanoseconds()});
    if (!event.lost) onEndMessage(event.peer, event.message);
  }
}

void NetTransport::onEnd() {
  sendGoodbye();
  for (NetEndpoint& each : list_) each.connection().close();
}

}  // namespace ncclrun
