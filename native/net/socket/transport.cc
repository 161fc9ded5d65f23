#include "net/socket/transport.h"

#include <poll.h>

#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"

namespace ncclrun {
namespace {

// One timeout for all peers. A host that is silent for longer is lost anyway.
constexpr uint64_t kGoodbyeTimeoutNanoseconds = 10'000'000'000;
// How often a wait for room in a socket checks the interrupt.
constexpr int kInterruptMs = 20;

}  // namespace

SocketTransport::SocketTransport(const PlanView& plan, uint32_t rank, const OwnCall& current, Interrupt& interrupt,
                                 Doorbell& own, const GonePeers& gonePeers, int listenFd)
    : plan_(plan),
      rank_(rank),
      current_(current),
      interrupt_(interrupt),
      own_(own),
      gonePeers_(gonePeers),
      listening_(listenFd) {}

// A peer takes a connection that ends without a goodbye for a death of this rank. A slow peer has not made room for the
// goodbye yet.
SocketTransport::~SocketTransport() {
  listener_.reset();
  const uint64_t deadline = nowNanoseconds() + kGoodbyeTimeoutNanoseconds;
  for (;;) {
    std::vector<pollfd> behind;
    for (const auto& [name, end] : ends_) {
      if (const int full = end->sendGoodbye(); full >= 0)
        behind.push_back({.fd = full, .events = POLLOUT, .revents = 0});
    }
    if (behind.empty() || interrupt_.raised() || nowNanoseconds() > deadline) return;
    poll(behind.data(), behind.size(), kInterruptMs);
  }
}

Status SocketTransport::start() {
  Status why;
  proxy_ = Proxy::shared(why);
  if (proxy_ == nullptr) return why;
  prepareOpenFiles(mostConnections());
  if (!listening_.valid()) return {};
  listener_ = std::make_unique<Listener>(
      proxy_, std::move(listening_), [this](const auto& hello, auto& connection) { admit(hello, connection); },
      [this](const Status& starved) { interrupt_.raise(starved); });
  return listener_->start();
}

Endpoint* SocketTransport::end(uint32_t peer, uint32_t channel, bool sends) {
  bool made = false;
  SocketEndpoint* end = find(peer, channel, sends, made);
  // Not under the mutex: the proxy's thread holds its own while it asks for ours.
  if (made && sends) {
    const auto record = plan_.peer(peer);
    end->connect(plan_.hostAddress(record.host), record.listenPort, helloTo(peer, channel));
  }
  return end;
}

SocketEndpoint* SocketTransport::find(uint32_t peer, uint32_t channel, bool sends, bool& made) {
  std::lock_guard lock(mutex_);
  auto& end = ends_[{peer, channel, sends}];
  if (end != nullptr) return end.get();
  const auto& header = plan_.header();
  const bool pair = channel == kPairChannel;
  const SocketEndpoint::Setup setup{.facts = {.peer = peer,
                                              .channel = channel,
                                              .sends = sends,
                                              .transport = plan::Transport::socket,
                                              .steps = pair ? header.pairSteps : header.ringSteps,
                                              .stepBytes = pair ? header.pairStepBytes : header.ringStepBytes,
                                              .peerName = plan_.describe(peer)},
                                    .current = current_,
                                    .proxy = proxy_,
                                    .interrupt = interrupt_,
                                    .own = own_,
                                    .gonePeers = gonePeers_};
  if (Status status = SocketEndpoint::make(setup, end); !status.ok()) {
    interrupt_.raise(status);
    ends_.erase({peer, channel, sends});
    return nullptr;
  }
  made = true;
  return end.get();
}

socket::Hello SocketTransport::helloTo(uint32_t peer, uint32_t channel) const {
  const auto& header = plan_.header();
  socket::Hello hello{};
  hello.magic = socket::kHelloMagic;
  hello.version = socket::kVersion;
  std::memcpy(hello.token, header.token, sizeof hello.token);
  hello.from = rank_;
  hello.to = peer;
  hello.channel = channel;
  hello.stepBytes = channel == kPairChannel ? header.pairStepBytes : header.ringStepBytes;
  return hello;
}

Status SocketTransport::connected() const {
  std::lock_guard lock(mutex_);
  for (const auto& [name, end] : ends_) {
    const bool pair = std::get<1>(name) == kPairChannel;
    if (!end->connected() && (!pair || std::get<2>(name))) return {ncclInProgress, "connecting"};
  }
  return {};
}

void SocketTransport::checkPeers() {
  std::lock_guard lock(mutex_);
  for (const auto& [name, end] : ends_) {
    if (end->facts().sends) continue;
    const StepCall* theirs = end->unread();
    if (theirs == nullptr || !isLeftOver(*theirs, current_.call)) continue;
    interrupt_.raise({ncclInvalidUsage, describeMismatch(*theirs, end->facts().peerName, current_)});
  }
}

void SocketTransport::watchAll() {
  std::lock_guard lock(mutex_);
  for (const auto& [name, end] : ends_) {
    if (end->unread() == nullptr) end->watch();
  }
}

bool SocketTransport::idle() const {
  std::lock_guard lock(mutex_);
  for (const auto& [name, end] : ends_) {
    if (!end->idle()) return false;
  }
  return true;
}

uint32_t SocketTransport::mostConnections() const {
  const auto& header = plan_.header();
  constexpr auto kSocket = uint8_t(plan::Transport::socket);
  const uint32_t others = header.ranks - header.localRanks;
  uint32_t count = 2 * others;
  if (header.sameHostTransport == kSocket) count += 2 * (header.localRanks - 1);
  const auto local = plan_.local(plan_.peer(rank_).localIndex);
  for (uint32_t i = 0; i < local.edgeCount; i++) {
    if (plan_.edge(local.firstEdge + i).transport == kSocket) count++;
  }
  return count;
}

bool SocketTransport::planned(uint32_t from, uint32_t channel) const {
  const auto& header = plan_.header();
  if (channel == kPairChannel) {
    const uint8_t transport = plan_.sameHost(from) ? header.sameHostTransport : header.otherHostTransport;
    return transport == uint8_t(plan::Transport::socket);
  }
  const auto local = plan_.local(plan_.peer(rank_).localIndex);
  for (uint32_t i = 0; i < local.edgeCount && header.ranks > 1; i++) {
    const auto edge = plan_.edge(local.firstEdge + i);
    if (edge.channel == channel && !edge.sends)
      return edge.peer == from && edge.transport == uint8_t(plan::Transport::socket);
  }
  return false;
}

void SocketTransport::admit(const socket::Hello& hello, Descriptor& connection) {
  const auto& header = plan_.header();
  if (hello.magic != socket::kHelloMagic || hello.version != socket::kVersion) return;
  // Compared in full, whatever differs first.
  uint8_t difference = 0;
  for (size_t i = 0; i < sizeof hello.token; i++) difference |= uint8_t(hello.token[i] ^ header.token[i]);
  if (difference != 0 || hello.to != rank_ || hello.from == rank_ || hello.from >= header.ranks) return;
  if (hello.stepBytes != (hello.channel == kPairChannel ? header.pairStepBytes : header.ringStepBytes)) return;
  if (!planned(hello.from, hello.channel)) return;
  bool made = false;
  if (SocketEndpoint* end = find(hello.from, hello.channel, false, made); end != nullptr) end->adopt(connection);
}

}  // namespace ncclrun
