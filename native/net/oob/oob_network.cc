#include "net/oob/oob_network.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace ncclrun::net {
namespace {

// How often a heartbeat is sent within the timeout.
constexpr uint64_t kHeartbeatsPerTimeout = 4;
// Of a peer's timeout: as NCCLRUN_NET_TIMEOUT is bounded.
constexpr uint64_t kLongestTimeout = 86'400'000'000'000;

// The number of a rank's listener, which its peers know and a stranger does not.
uint64_t listenerOf(const Token& token, uint32_t rank) {
  std::array<uint8_t, 8> text = {'o', 'o', 'b', ':'};
  std::memcpy(text.data() + 4, &rank, sizeof rank);
  return derivedNumber(token, text);
}

// A debugger traces this process.
bool isTraced() {
  std::ifstream status("/proc/self/status");
  constexpr std::string_view kField = "TracerPid:\t";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(kField)) return line.substr(kField.size()) != "0";
  }
  return false;
}

}  // namespace

Status OobNetwork::make(Setup setup, std::unique_ptr<OobNetwork>& out) {
  std::unique_ptr<OobNetwork> made(new OobNetwork(std::move(setup)));
  NCCLRUN_TRY(made->start());
  out = std::move(made);
  return {};
}

Status OobNetwork::start() {
  SocketConfig config;
  config.devices = {{.interface = {}, .address = setup_.address}};
  config.token = setup_.token;
  NCCLRUN_TRY(SocketNetwork::make(std::move(config), network_));
  lastTick_ = nowNanoseconds();
  if (!setup_.listening.valid()) return {};
  Status why;
  acceptor_ = Acceptor::adopt(std::move(setup_.listening), why);
  if (acceptor_ == nullptr) return why;
  listener_ = listenerOf(setup_.token, setup_.rank);
  acceptor_->open(listener_, setup_.token, [] {});
  return network_->watch(acceptor_->eventDescriptor(), false);
}

OobNetwork::~OobNetwork() {
  if (acceptor_ != nullptr) acceptor_->close(listener_);
}

void OobNetwork::flush(Peer& peer) {
  if (peer.sockets.empty()) return;
  OobSocket& socket = peer.sockets.front();
  for (const OobMessage& message : std::exchange(peer.queued, {})) socket.queue(message);
  socket.send();  // of a dead one, receive() reports the reason
}

void OobNetwork::send(uint32_t rank, OobMessage message) {
  Peer& peer = peers_[rank];
  if (peer.hasLeft) return;
  message.from = setup_.rank;
  peer.queued.push_back(message);
  if (!peer.sockets.empty()) return flush(peer);
  if (peer.connector != nullptr) return;
  Address address;
  if (!setup_.addressOf(rank, address).ok()) return;
  peer.connector =
      std::make_unique<SocketConnector>(*network_, 0, ListenerAddress{address, listenerOf(setup_.token, rank)});
  peer.connectingSince = nowNanoseconds();
  network_->notify();  // whoever waits for events begins to connect
}

void OobNetwork::lose(uint32_t rank, Peer& peer, const std::string& why, std::vector<Event>& out) {
  peer.connector.reset();
  peer.queued.clear();
  if (std::exchange(peer.hasLeft, true)) return;
  out.push_back({.peer = rank, .lost = true, .message = {}, .why = why});
}

Status OobNetwork::connect(uint32_t rank, Peer& peer, std::vector<Event>& out) {
  if (peer.connector == nullptr) return {};
  std::vector<Descriptor> sockets;
  const Status status = peer.connector->connectSockets(sockets);
  if (!status.ok()) {
    lose(rank, peer, status.sentence, out);
    return status.code == ncclSystemError ? status : Status{};
  }
  if (sockets.empty()) return {};
  peer.connector.reset();
  // Both may connect at the same time: what is said first goes over this one, and the other one stays open too.
  OobSocket& socket = peer.sockets.emplace_front(std::move(sockets.front()), rank);
  socket.queue(introduction());
  flush(peer);
  return {};
}

OobMessage OobNetwork::introduction() const {
  OobMessage message;
  message.kind = OobKind::introduction;
  message.from = setup_.rank;
  message.timeoutNanoseconds = setup_.timeoutNanoseconds;
  setup_.network.copy(message.network.data(), message.network.size() - 1);
  return message;
}

Status OobNetwork::acceptAll() {
  if (acceptor_ == nullptr) return {};
  std::vector<AcceptedSocket> arrived;
  const Status status = acceptor_->poll(listener_, arrived);
  for (AcceptedSocket& socket : arrived) {
    network_->prepare(socket.descriptor.get());
    NCCLRUN_TRY(network_->watch(socket.descriptor.get()));
    strangers_.emplace_back(std::move(socket.descriptor), OobSocket::kUnknown);
  }
  return status;
}

void OobNetwork::take(uint32_t rank, Peer& peer, const std::vector<OobMessage>& messages, std::vector<Event>& out) {
  for (const OobMessage& message : messages) {
    if (message.kind == OobKind::heartbeat) continue;
    if (message.kind == OobKind::goodbye && std::exchange(peer.hasLeft, true)) continue;
    out.push_back({.peer = rank, .lost = false, .message = message});
  }
}

void OobNetwork::receiveFrom(uint32_t rank, Peer& peer, std::vector<Event>& out) {
  for (auto socket = peer.sockets.begin(); socket != peer.sockets.end();) {
    std::vector<OobMessage> messages;
    std::string why;
    const bool isAlive = socket->receive(setup_.ranks, messages, why);
    take(rank, peer, messages, out);
    if (isAlive) {
      socket++;
      continue;
    }
    socket = peer.sockets.erase(socket);
    // Of two sockets one may have a goodbye, which is behind what ends the other one.
    if (peer.sockets.empty()) lose(rank, peer, why, out);
  }
}

Status OobNetwork::advance(std::vector<Event>& out) {
  network_->clearEvents();
  NCCLRUN_TRY(acceptAll());
  for (auto next = strangers_.begin(); next != strangers_.end();) {
    const auto socket = next++;
    std::vector<OobMessage> messages;
    std::string why;
    const bool isAlive = socket->receive(setup_.ranks, messages, why);
    const uint32_t rank = socket->peer();
    if (rank == OobSocket::kUnknown) {
      if (!isAlive) strangers_.erase(socket);
      continue;
    }
    Peer& peer = peers_[rank];
    take(rank, peer, messages, out);
    // The peer has to know this rank's network before an offer of it, whichever of their sockets carries that.
    socket->queue(introduction());
    socket->send();
    peer.sockets.splice(peer.sockets.end(), strangers_, socket);
  }
  for (auto& [rank, peer] : peers_) {
    NCCLRUN_TRY(connect(rank, peer, out));
    receiveFrom(rank, peer, out);
    flush(peer);
  }
  return {};
}

void OobNetwork::receive(uint32_t rank, std::vector<Event>& out) {
  if (const auto found = peers_.find(rank); found != peers_.end()) receiveFrom(rank, found->second, out);
}

// A process that was stopped itself, alone or with its job, sees its own silence in the clock and begins anew.
void OobNetwork::tick(std::vector<Event>& out) {
  const uint64_t now = nowNanoseconds();
  const bool wasStopped = now - std::exchange(lastTick_, now) > setup_.timeoutNanoseconds / kHeartbeatsPerTimeout;
  for (auto& [rank, peer] : peers_) {
    if (peer.hasLeft) continue;
    if (wasStopped) {
      peer.connectingSince = now;
      for (OobSocket& socket : peer.sockets) socket.restartClock(now);
    }
    if (const std::string why = silenceOf(rank, peer, now); !why.empty()) {
      lose(rank, peer, why, out);
      continue;
    }
    if (!peer.sockets.empty() &&
        now - peer.sockets.front().lastSent() > setup_.timeoutNanoseconds / kHeartbeatsPerTimeout)
      send(rank, {.isTraced = isTraced() ? 1u : 0u});
  }
}

std::string OobNetwork::silenceOf(uint32_t rank, const Peer& peer, uint64_t now) const {
  if (peer.sockets.empty() && peer.connector == nullptr) return {};
  uint64_t lastReceived = peer.connector != nullptr ? peer.connectingSince : 0;
  bool isPeerTraced = false;
  uint64_t timeout = setup_.timeoutNanoseconds;  // where ranks have different ones, the longer holds
  for (const OobSocket& socket : peer.sockets) {
    timeout = std::max(timeout, std::min(socket.peerTimeout(), kLongestTimeout));
    lastReceived = std::max(lastReceived, socket.lastReceived());
    isPeerTraced = isPeerTraced || socket.isPeerTraced();
  }
  if (now - lastReceived <= timeout) return {};
  // A host acknowledges what a stopped process does not receive: the last heartbeat was sent a quarter of the timeout
  // ago.
  const bool isHostSilent = peer.sockets.empty() || peer.sockets.front().isUnacknowledgedFor(timeout / 2);
  if (isPeerTraced && !isHostSilent) return {};
  Address address;
  const std::string at = setup_.addressOf(rank, address).ok() ? " at " + address.textWithPort() : "";
  const std::string by = ", reached from " + setup_.address + interfaceOf(setup_.address) + ",";
  const std::string span = " for " + std::to_string(timeout / 1'000'000'000) + " s (NCCLRUN_NET_TIMEOUT): ";
  if (peer.sockets.empty())
    return "it" + at + by + " has not answered" + span +
           "its process is stopped or hangs, or the host or the network between is down";
  if (isHostSilent)
    return "its host" + at + by + " has not answered" + span + "the host, or the network between, is down";
  return "it" + at + by + " has sent no heartbeat" + span +
         "its host acknowledges, so its process is stopped (SIGSTOP, a debugger) or hangs";
}

uint64_t OobNetwork::tickNanoseconds() const {
  constexpr uint64_t kMaxNanoseconds = 1'000'000'000;
  return std::min(setup_.timeoutNanoseconds / (2 * kHeartbeatsPerTimeout), kMaxNanoseconds);
}

void OobNetwork::sendToAll(const OobMessage& message) {
  for (auto& [rank, peer] : peers_) {
    if (!peer.sockets.empty()) send(rank, message);
  }
}

bool OobNetwork::hasUnsent() const {
  for (const auto& [rank, peer] : peers_) {
    for (const OobSocket& socket : peer.sockets) {
      if (socket.hasUnsent() && !peer.hasLeft) return true;
    }
  }
  return false;
}

}  // namespace ncclrun::net
