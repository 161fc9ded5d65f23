// The part of CudaDataPath that reaches GPUs of other hosts.
#include <utility>

#include "cuda/cuda_data_path.h"
#include "datapath/step_call.h"
#include "plan/tree_shape.h"

namespace ncclrun::cuda {

Status CudaDataPath::startNetwork(Descriptor listening) {
  Resources& mine = *resources_;
  if (plan().header().hosts == 1) return {};
  mine.activity.ended = &mine.pinned->ended;
  mine.netRegions = std::make_unique<NetRegions>(mine.gpu, plan(), setup_.rank,
                                                 [&activity = mine.activity] { return activity.isBusy(); });
  NCCLRUN_TRY(mine.barrierWord.allocate(mine.gpu, sizeof(int32_t), mine.stream));
  mine.netRegions->setHandlers(
      [this](uint32_t peer, const Status& why, bool hasAborted) {
        resources_->gonePeers.add(peer, why);  // calls that need it are refused from now on
        if (!hasAborted) peerLost(peer, why);
      },
      [this](uint32_t peer, const StepCall& call) {
        if (const Status status = remoteCalls_.addFrom(peer, call); !status.ok()) failAll(status);
      });
  mine.net = std::make_unique<NetTransport>(plan(), setup_.rank, mine.call, interrupt(), ownBell(), mine.gonePeers,
                                            listening.release(), mine.netRegions.get(), mine.recorder);
  NCCLRUN_TRY(mine.net->start());
  NCCLRUN_TRY(allocateNetRegions());
  return connectRings();
}

// Where the network and its devices are known: they decide in which memory slots lie.
Status CudaDataPath::allocateNetRegions() {
  Resources& mine = *resources_;
  auto direct = std::make_shared<GpuDirect>();
  direct->decide(mine.gpu, plan(), setup_.rank, mine.net->network());
  const auto useOf = [direct, net = mine.net.get()](uint32_t peer, uint32_t channel, bool sends) {
    return direct->of(net->deviceOf(peer, channel, sends));
  };
  NCCLRUN_TRY(mine.netRegions->allocate(useOf, direct->any()));
  if (mine.net->groupChannels() == 0) return {};
  NCCLRUN_TRY(mine.netRegions->makeGroups(mine.net->groupChannels()));
  mine.net->placeGroups();
  return {};
}

uint64_t CudaDataPath::networkReductions() const {
  return resources_->net == nullptr ? 0 : resources_->net->networkReductions();
}

void CudaDataPath::useNetworkReductions(uint64_t agreed) {
  reductions_.store(agreed, std::memory_order_release);
  if (resources_->net != nullptr) resources_->net->useNetworkReductions(agreed);
}

// Tells the rank of another host that compares its calls with this one's.
Status CudaDataPath::compareRemotely() {
  const std::optional<uint32_t> listener = remoteCalls_.listener();
  const StepCall& call = calls_.last();
  if (!listener.has_value() || !CallCheck::isLookedAt(call.number)) return {};
  resources_->net->sendCall(*listener, call);
  return remoteCalls_.add(call);
}

void CudaDataPath::peerLost(uint32_t peer, const Status& why) {
  if (!resources_->activity.isBusy()) return;
  {
    std::lock_guard lock(awaitedMutex_);
    if (resources_->activity.hasEnded(markedBlocks_)) awaited_.passedMark();
    if (!awaited_.mayInclude(peer)) return;
  }
  interrupt().raise(why, why.code == ncclInvalidUsage ? Interrupt::kNobody : peer, FailureScope::alone);
  abort(why, FailureScope::alone);
  if (setup_.failed) setup_.failed(why, FailureScope::alone);
}

Status CudaDataPath::connectRings() {
  const uint32_t ranks = plan().header().ranks;
  for (uint32_t channel = 0; channel < plan().header().channels; channel++) {
    const uint32_t index = plan().ringIndex(channel, setup_.rank);
    for (const bool sends : {true, false}) {
      const uint32_t peer = plan().ring(channel, (index + (sends ? 1 : ranks - 1)) % ranks);
      if (plan().sameHost(peer)) continue;
      const uint32_t number = deviceChannel(channel, plan().header().channels, !hasRingsApart(ranks));
      if (resources_->net->endpoint(peer, number, sends) == nullptr) return interrupt().status();
    }
  }
  return {};
}

// All channels that the plan gives them, because both ranks have to make the same, and know no more of each other's
// operations than the peer.
Status CudaDataPath::connectWith(uint32_t peer) {
  if (peer == setup_.rank || plan().sameHost(peer) || connectedPairs_.contains(peer)) return {};
  NCCLRUN_TRY(resources_->netRegions->makePair(peer));
  connectedPairs_.insert(peer);
  const uint32_t channels = plan().header().channels;
  const uint32_t connected = plan().channelsBetween(setup_.rank, peer);
  for (uint32_t channel = 0; channel < connected; channel++) {
    for (const bool sends : {true, false}) {
      if (resources_->net->endpoint(peer, deviceChannel(channel, channels, true), sends) == nullptr)
        return interrupt().status();
    }
  }
  return {};
}

// Of the rings: under protocol LL they use the connections of pairs.
Status CudaDataPath::connectWithNeighbours() {
  const uint32_t ranks = plan().header().ranks;
  for (uint32_t channel = 0; channel < plan().header().pairChannels; channel++) {
    const uint32_t index = plan().ringIndex(channel, setup_.rank);
    NCCLRUN_TRY(connectWith(plan().ring(channel, (index + ranks - 1) % ranks)));
    NCCLRUN_TRY(connectWith(plan().ring(channel, (index + 1) % ranks)));
  }
  return {};
}

Status CudaDataPath::connectFor(std::span<const Task> tasks) {
  if (resources_->net == nullptr) return {};
  for (const Task& task : tasks) {
    const Operation& operation = task.operation;
    switch (plan::Algorithm(task.variant.algorithm)) {
      case plan::Algorithm::ring:
        if (task.variant.protocol == uint8_t(plan::Protocol::ll)) NCCLRUN_TRY(connectWithNeighbours());
        continue;  // under protocol Simple its connections are there
      case plan::Algorithm::tree: {
        const bool fromTop = operation.collective == plan::Collective::allReduce;
        const uint32_t root = fromTop ? topOfTree(plan(), kTreeChannel) : operation.peer;
        const TreePosition position = treePosition(plan(), kTreeChannel, setup_.rank, root);
        for (const uint32_t child : position.children) NCCLRUN_TRY(connectWith(child));
        if (setup_.rank != root) NCCLRUN_TRY(connectWith(position.parent));
        continue;
      }
      case plan::Algorithm::rail:
        for (const uint32_t peer : launcher_->railPeers()) NCCLRUN_TRY(connectWith(peer));
        continue;
      case plan::Algorithm::collnet:
      case plan::Algorithm::collnetChain:
        continue;  // its groups are there
      default:
        break;
    }
    const bool isSubordinate = hasRoot(operation.collective) && operation.peer != setup_.rank;
    if (operation.collective == plan::Collective::sendRecv || isSubordinate) {
      NCCLRUN_TRY(connectWith(operation.peer));
    } else {
      for (uint32_t peer = 0; peer < plan().header().ranks; peer++) NCCLRUN_TRY(connectWith(peer));
    }
  }
  return {};
}

Operation CudaDataPath::carriedOutBy(const Operation& operation) const {
  if (operation.collective != plan::Collective::barrier || resources_->net == nullptr) return operation;
  Operation reduction = operation;
  reduction.collective = plan::Collective::allReduce;
  reduction.send = reduction.receive = reinterpret_cast<void*>(resources_->barrierWord.pointer());
  reduction.count = 1;
  reduction.type = ncclInt32;
  return reduction;
}

RegionPair CudaDataPath::regionsWith(uint32_t peer, auto&& inAndOut) const {
  const auto [in, out] = plan().sameHost(peer) ? inAndOut(*resources_->regions) : inAndOut(*resources_->netRegions);
  return {reinterpret_cast<char*>(in), reinterpret_cast<char*>(out), plan().sameHost(peer) ? 0u : 1u};
}

RegionPair CudaDataPath::pairRegions(uint32_t peer) const {
  return regionsWith(peer, [&](const auto& regions) { return std::pair(regions.in(peer), regions.out(peer)); });
}

RegionPair CudaDataPath::ringRegions(uint32_t peer) const {
  return regionsWith(peer, [&](const auto& regions) { return std::pair(regions.ringIn(peer), regions.ringOut(peer)); });
}

}  // namespace ncclrun::cuda
