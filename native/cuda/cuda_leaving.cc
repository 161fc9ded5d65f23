// Handles ranks that have left a communicator while others continue with it. Data that they have sent lies in this
// GPU's memory, and a waiting kernel reports neither its peer nor its operation: so calls that need such a rank are
// refused, and the agent reports which ranks wait long.
#include "cuda/cuda_data_path.h"
#include "datapath/step_call.h"

namespace ncclrun::cuda {

void CudaDataPath::leave(uint64_t collectives) {
  resources_->segment.leave(plan().peer(setup_.rank).localIndex, collectives);
  if (resources_->net != nullptr) resources_->net->leave(collectives + 1);
}

void CudaDataPath::leaveAborted() { resources_->segment.leaveAborted(plan().peer(setup_.rank).localIndex); }

uint64_t CudaDataPath::leftAt(uint32_t peer) const {
  if (!plan().sameHost(peer)) return resources_->netRegions->leftAt(peer);
  return resources_->segment.doorbell(plan().peer(peer).localIndex).left.load(std::memory_order_acquire);
}

// Returns why the peer takes no part in the operation; success if it may take part.
Status CudaDataPath::checkPresent(const Operation& operation, uint32_t peer) const {
  if (Status why = resources_->gonePeers.why(peer); why.code == ncclRemoteError) return why;
  const uint64_t left = leftAt(peer);
  if (left == 0) return {};
  if (left == kAborted) return abortedBy(plan().describe(peer));
  const bool isCollective = operation.collective != plan::Collective::sendRecv;
  const bool took = isCollective ? operation.hashed < left : operation.send == nullptr;  // its data may have arrived
  if (took) return {};
  return {ncclInvalidUsage, "the ranks’ calls differ: " + plan().describe(setup_.rank) + " called " +
                                describe(callOf(operation, {})) + ", which " + plan().describe(peer) +
                                " did not before ncclCommFinalize"};
}

// A fast check, which every call makes.
bool CudaDataPath::allPeersPresent() const {
  if (resources_->gonePeers.any()) return false;
  if (resources_->netRegions != nullptr && resources_->netRegions->anyLeft()) return false;
  const Segment& segment = resources_->segment;
  uint64_t left = 0;
  for (uint32_t local = 0; local < plan().header().localRanks; local++)
    left |= segment.doorbell(local).left.load(std::memory_order_acquire);
  return left == 0;
}

Status CudaDataPath::checkPresent(std::span<const Operation> operations) {
  if (allPeersPresent()) return {};
  for (const Operation& operation : operations) {
    const bool isCollective = operation.collective != plan::Collective::sendRecv;
    for (uint32_t peer = 0; peer < plan().header().ranks; peer++) {
      if (peer == setup_.rank || (!isCollective && peer != operation.peer)) continue;
      Status why = checkPresent(operation, peer);
      if (why.ok()) continue;
      if (why.code == ncclRemoteError) telemetry_.lost(peer);
      return why;
    }
  }
  return {};
}

// The operations of replayed graphs are not counted.
bool CudaDataPath::waitsFor(uint32_t peer, const Status& why, FailureScope& scope) {
  scope = FailureScope::alone;
  const bool passed = resources_->order->passedMark();
  std::lock_guard lock(awaitedMutex_);
  if (passed) awaited_.passedMark();
  if (why.code != ncclInvalidUsage) return awaited_.mayInclude(peer);
  if (resources_->order->everCaptured()) return false;
  const uint64_t left = leftAt(peer);
  if (left != 0 && left != kAborted && awaited_.collectives() >= left) {
    scope = FailureScope::all;
    return true;
  }
  return awaited_.areOnly(peer);
}

void CudaDataPath::peerGone(uint32_t rank, const Status& why, bool waited) {
  resources_->gonePeers.add(rank, why);
  ownBell().sequence.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(ownBell().sequence);
  if (!waited || idle()) return;
  FailureScope scope;
  {
    std::lock_guard lock(mutex_);
    const OnGpu here(resources_->gpu);
    if (!waitsFor(rank, why, scope)) return;
  }
  interrupt().raise(why, why.code == ncclInvalidUsage ? Interrupt::kNobody : rank, scope);
  abort(why, scope);
  if (setup_.failed) setup_.failed(why, scope);
}

}  // namespace ncclrun::cuda
