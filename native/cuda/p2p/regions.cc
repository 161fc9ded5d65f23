#include "cuda/p2p/regions.h"

#include <cstring>
#include <set>
#include <utility>

#include "base/debug.h"
#include "cuda/p2p/process_token.h"

namespace ncclrun::cuda {

Regions::Regions(const Gpu& gpu, const PlanView& plan, const Segment& segment, uint32_t rank)
    : gpu_(gpu),
      plan_(plan),
      segment_(segment),
      rank_(rank),
      ownLocal_(localOf(rank)),
      localRanks_(plan.header().localRanks),
      slots_(plan.slots()) {}

Regions::~Regions() {
  const OnGpu here(gpu_);
  for (const Peer& peer : peers_) {
    if (peer.isForeign) driver().ipcCloseMemHandle(peer.mapped);
  }
}

Status Regions::allocate(Stream stream) {
  if (localRanks_ == 1) return {};
  return own_.allocate(gpu_, ringsAt() + ringBytes(slots_, plan_.header().ranks), stream);
}

Status Regions::publish() {
  if (localRanks_ > 1) {
    DeviceRecord& record = segment_.deviceRecord(localOf(rank_));
    record.process = processToken();
    record.context = reinterpret_cast<uint64_t>(gpu_.context);
    record.pointer = own_.pointer();
    record.bytes = own_.bytes();
    const OnGpu here(gpu_);
    IpcHandle handle{};
    Status status = statusOf(driver().ipcGetMemHandle(&handle, own_.pointer()), "cuIpcGetMemHandle");
    if (!status.ok()) return status;
    std::memcpy(record.ipcHandle, &handle, sizeof handle);
    record.stage.store(1, std::memory_order_release);
  }
  state_ = State::published;
  return {};
}

bool Regions::allAt(uint32_t stage) const {
  for (uint32_t local = 0; local < localRanks_; local++) {
    if (segment_.deviceRecord(local).stage.load(std::memory_order_acquire) < stage) return false;
  }
  return true;
}

Status Regions::connect() {
  const bool alone = localRanks_ == 1;
  if (state_ == State::published) {
    if (!alone && !allAt(1)) return {ncclInProgress, {}};
    NCCLRUN_TRY(openAll());
    state_ = State::opened;
  }
  if (state_ == State::opened) {
    if (!alone && !allAt(2)) return {ncclInProgress, {}};
    NCCLRUN_TRY(decide());
    if (!why_.empty())
      logInfo(formatSentence("rank %u reaches GPUs through memory of the host: %s", rank_, why_.c_str()),
              Subsystem::p2p);
    state_ = State::connected;
  }
  return {};
}

Status Regions::open(uint32_t peer) {
  const DeviceRecord& record = segment_.deviceRecord(localOf(peer));
  Peer& theirs = peers_[localOf(peer)];
  if (record.process == processToken()) {
    const Result result = driver().ctxEnablePeerAccess(reinterpret_cast<Context>(record.context), 0);
    if (result != kPeerAccessAlreadyEnabled && result != kSuccess) return statusOf(result, "cuCtxEnablePeerAccess");
    theirs.mapped = record.pointer;
    return {};
  }
  IpcHandle handle;
  std::memcpy(&handle, record.ipcHandle, sizeof handle);
  Status status = statusOf(driver().ipcOpenMemHandle(&theirs.mapped, handle, kIpcLazyPeerAccess), "cuIpcOpenMemHandle");
  theirs.isForeign = status.ok();
  return status;
}

Status Regions::openAll() {
  if (localRanks_ == 1) return {};
  DeviceRecord& own = segment_.deviceRecord(localOf(rank_));
  const OnGpu here(gpu_);
  uint64_t reached = 0;
  for (uint32_t peer = 0; peer < plan_.header().ranks; peer++) {
    if (peer == rank_ || !plan_.sameHost(peer)) continue;
    Status status{ncclSuccess, {}};
    if (plan_.header().sameHostTransport == uint8_t(plan::Transport::p2p)) {
      status = open(peer);
    } else {
      status = {ncclInvalidUsage, "the plan says so (NCCL_P2P_DISABLE or NCCL_P2P_LEVEL)"};
    }
    if (status.ok()) {
      reached |= 1ull << localOf(peer);
    } else if (why_.empty()) {
      why_ = "rank " + std::to_string(rank_) + " cannot store into GPU memory of rank " + std::to_string(peer) + ": " +
             status.sentence;
      std::strncpy(own.why, why_.c_str(), sizeof own.why - 1);
    }
  }
  own.reached.store(reached, std::memory_order_relaxed);
  own.stage.store(2, std::memory_order_release);
  return {};
}

// Both ranks of a pair decide alike.
Status Regions::decide() {
  const uint32_t ranks = localRanks_;
  const uint32_t own = localOf(rank_);
  const uint64_t reached = ranks == 1 ? 0 : segment_.deviceRecord(own).reached.load(std::memory_order_relaxed);
  const uint64_t all = (1ull << ranks) - 1;  // of at most kMaxPeers
  for (uint32_t local = 0; ranks > 1 && local < ranks; local++) {
    const uint64_t reaches = segment_.deviceRecord(local).reached.load(std::memory_order_relaxed);
    allReach_ = allReach_ && (reaches | 1ull << local) == all;
  }
  for (uint32_t peer = 0; peer < plan_.header().ranks; peer++) {
    if (peer == rank_ || !plan_.sameHost(peer)) continue;
    const uint32_t theirs = localOf(peer);
    const DeviceRecord& record = segment_.deviceRecord(theirs);
    const bool both = (reached >> theirs & 1) != 0 && (record.reached.load(std::memory_order_relaxed) >> own & 1) != 0;
    if (both) {
      Peer& found = peers_[theirs];
      found.out = found.mapped + offsetFor(own, theirs);
      found.in = own_.pointer() + offsetFor(theirs, own);
      found.ringOut = found.mapped + ringsAt();
      found.ringIn = own_.pointer() + ringsAt();
      found.transport = plan::Transport::p2p;
      continue;
    }
    if (why_.empty()) why_.assign(record.why, strnlen(record.why, sizeof record.why));
    NCCLRUN_TRY(useHostMemory(peer));
  }
  return {};
}

bool Regions::queuesApart() const {
  std::set<std::pair<uint64_t, uint64_t>> owners;
  for (uint32_t local = 0; local < localRanks_; local++) {
    const DeviceRecord& record = segment_.deviceRecord(local);
    if (!owners.emplace(record.process, record.context).second) return false;
  }
  return true;
}

void Regions::publishTornLines(uint32_t words) {
  DeviceRecord& record = segment_.deviceRecord(localOf(rank_));
  record.tornLines = words;
  record.stage.store(3, std::memory_order_release);
}

void Regions::publishRest() {
  if (state_ != State::unpublished && localRanks_ > 1)
    segment_.deviceRecord(ownLocal_).stage.store(4, std::memory_order_release);
}

Status Regions::agreeOnLL128(bool& whole) const {
  if (!allAt(3)) return {ncclInProgress, {}};
  whole = true;
  for (uint32_t local = 0; local < localRanks_; local++) {
    whole = whole && segment_.deviceRecord(local).tornLines == 0;
  }
  return {};
}

// Address on this GPU of a pair's memory in the segment, or of a rank's rings if both ranks are the same.
Status Regions::pinned(uint32_t fromLocal, uint32_t toLocal, uint64_t bytes, Pointer& out) {
  std::byte* const memory = segment_.pairMemory(fromLocal, toLocal);
  PinnedPages& pages = pinned_[memory];
  if (!pages.pinned()) {
    NCCLRUN_TRY(pages.pin(gpu_, memory, bytes));
  }
  out = pages.pointerTo(memory);
  return {};
}

Status Regions::useHostMemory(uint32_t peer) {
  const uint32_t own = localOf(rank_), theirs = localOf(peer);
  const uint64_t pair = pairBytes(slots_), rings = ringBytes(slots_, plan_.header().ranks);
  Peer& found = peers_[theirs];
  Status status = pinned(own, theirs, pair, found.out);
  if (status.ok()) status = pinned(theirs, own, pair, found.in);
  if (status.ok() && rings > 0) status = pinned(theirs, theirs, rings, found.ringOut);
  if (status.ok() && rings > 0) status = pinned(own, own, rings, found.ringIn);
  found.transport = plan::Transport::shm;
  return status;
}

}  // namespace ncclrun::cuda
