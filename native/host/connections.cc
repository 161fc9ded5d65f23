#include "host/connections.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace ncclrun {

Connections::Connections(const PlanView& plan, const Segment& segment, uint32_t rank, Interrupt& interrupt,
                         const GonePeers& gonePeers, int listenFd, std::shared_ptr<const RecorderClaim> recorder)
    : plan_(plan), rank_(rank), own_{plan.describe(rank), {}} {
  shm_ = std::make_unique<ShmTransport>(plan, segment, rank, own_, gonePeers);
  auto& bell = segment.doorbell(plan.peer(rank).localIndex);
  net_ = std::make_unique<NetTransport>(plan, rank, own_, interrupt, bell, gonePeers, listenFd, nullptr,
                                        std::move(recorder));
}

bool Connections::usesNetwork() const {
  const auto& header = plan_.header();
  const auto socket = uint8_t(plan::Transport::socket);
  if (header.ranks == 1) return false;
  if (header.localRanks < header.ranks || header.sameHostTransport == socket) return true;
  const auto local = plan_.local(plan_.peer(rank_).localIndex);
  for (uint32_t i = 0; i < local.edgeCount; i++) {
    if (plan_.edge(local.firstEdge + i).transport == socket) return true;
  }
  return false;
}

Status Connections::start() { return usesNetwork() ? net_->start() : Status{}; }

Status Connections::connect() {
  const auto& header = plan_.header();
  if (!begun_ && header.ranks > 1) {
    const auto local = plan_.local(plan_.peer(rank_).localIndex);
    for (uint32_t i = 0; i < local.edgeCount; i++) {
      const auto edge = plan_.edge(local.firstEdge + i);
      if (edge.kind == uint8_t(plan::EdgeKind::ring)) find(edge.peer, edge.channel, edge.sends != 0, edge.transport);
    }
  }
  begun_ = true;
  return net_->connected();
}

Endpoint* Connections::ring(uint32_t channel, uint32_t peer, bool sends) {
  const auto local = plan_.local(plan_.peer(rank_).localIndex);
  for (uint32_t i = 0; i < local.edgeCount; i++) {
    const auto edge = plan_.edge(local.firstEdge + i);
    if (edge.kind == uint8_t(plan::EdgeKind::ring) && edge.channel == channel && bool(edge.sends) == sends)
      return find(peer, channel, sends, edge.transport);
  }
  return nullptr;
}

Endpoint* Connections::pair(uint32_t peer, bool sends) {
  const auto& header = plan_.header();
  return find(peer, kPairChannel, sends, plan_.sameHost(peer) ? header.sameHostTransport : header.otherHostTransport);
}

Endpoint* Connections::find(uint32_t peer, uint32_t channel, bool sends, uint8_t transport) {
  std::lock_guard lock(mutex_);
  auto& end = found_[{peer, channel, sends}];
  if (end == nullptr) {
    const bool shm = transport == uint8_t(plan::Transport::shm);
    end = shm ? shm_->endpoint(peer, channel, sends) : net_->endpoint(peer, channel, sends);
    if (end != nullptr) (channel == kPairChannel ? pairs_ : rings_).push_back(end);
  }
  return end;
}

bool Connections::idle() const { return net_->idle(); }

size_t Connections::list(std::span<ncclrunEdge> out) const {
  std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto* ends : {&rings_, &pairs_}) {
    for (const Endpoint* end : *ends) {
      if (count < out.size()) {
        const auto& facts = end->facts();
        out[count] = {facts.channel, facts.peer, facts.sends ? 1u : 0u, uint32_t(facts.transport), end->bytes()};
      }
      count++;
    }
  }
  return count;
}

}  // namespace ncclrun
