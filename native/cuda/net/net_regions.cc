#include "cuda/net/net_regions.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "net/proxy/net_connection.h"

namespace ncclrun::cuda {
namespace {

// In front of a slot's message header.
constexpr uint64_t kUnused = kNetHeaderBytes - sizeof(NetConnection::SlotHeader);

}  // namespace

NetRegions::NetRegions(const Gpu& gpu, const PlanView& plan, uint32_t rank, std::function<bool()> isBusy)
    : gpu_(gpu), plan_(plan), rank_(rank), slots_(plan.slots()), isBusy_(std::move(isBusy)), gpuSlots_(gpu) {}

NetRegions::~NetRegions() {
  const OnGpu here(gpu_);
  for (void* memory : pieces_) driver().memFreeHost(memory);
}

// The driver takes long to pin memory, and may wait for running kernels, so it pins more than the first pairs need.
Status NetRegions::take(uint64_t bytes, std::byte*& out) {
  constexpr uint64_t kPieceBytes = 16 << 20;
  bytes = inPages(bytes);
  if (bytes > untaken_.size()) {
    const uint64_t all = std::max(bytes, kPieceBytes);
    void* memory = nullptr;
    NCCLRUN_TRY(statusOf(driver().memHostAlloc(&memory, all, kHostPortable | kHostMapped), "cuMemHostAlloc"));
    pieces_.push_back(memory);
    std::memset(memory, 0, all);
    untaken_ = {static_cast<std::byte*>(memory), all};
  }
  out = untaken_.data();
  untaken_ = untaken_.subspan(bytes);
  return {};
}

bool NetRegions::isNeighbour(uint32_t peer) const {
  const uint32_t ranks = plan_.header().ranks;
  for (uint32_t channel = 0; channel < slots_.channels; channel++) {
    const uint32_t distance = (plan_.ringIndex(channel, peer) + ranks - plan_.ringIndex(channel, rank_)) % ranks;
    if (distance == 1 || distance == ranks - 1) return true;
  }
  return false;
}

Status NetRegions::allocate(UseOf useOf, bool directs) {
  useOf_ = std::move(useOf);
  directs_ = directs;
  const OnGpu here(gpu_);
  const uint32_t ranks = plan_.header().ranks;
  const uint64_t rings = ringBytes(slots_, ranks);
  std::byte* table = nullptr;
  NCCLRUN_TRY(take(ranks * sizeof(RegionPair), table));
  pairs_ = reinterpret_cast<RegionPair*>(table);
  for (uint32_t rank = 0; rank < ranks; rank++) {
    if (plan_.sameHost(rank) || !isNeighbour(rank)) continue;
    if (rings == 0) {
      NCCLRUN_TRY(makePair(rank));
      continue;
    }
    Peer& peer = peers_[rank];
    NCCLRUN_TRY(take(rings, peer.ringOut));
    NCCLRUN_TRY(take(rings, peer.ringIn));
    NCCLRUN_TRY(placeInGpu(rank, slots_.channels, false));
  }
  return {};
}

Status NetRegions::makePair(uint32_t rank) {
  return peers_[rank].out != nullptr ? Status() : makePair(rank, plan_.channelsBetween(rank_, rank), 1);
}

// A rank's regions with itself, which it needs for nothing else.
Status NetRegions::makeGroups(uint32_t channels) { return makePair(rank_, channels, kReduces); }

Status NetRegions::makePair(uint32_t rank, uint32_t channels, uint64_t isRemote) {
  Peer& peer = peers_[rank];
  const OnGpu here(gpu_);
  const uint64_t bytes = regionOffset(slots_, channels);
  NCCLRUN_TRY(take(bytes, peer.in));
  NCCLRUN_TRY(take(bytes, peer.out));
  NCCLRUN_TRY(placeInGpu(rank, channels, true));
  enter(rank, {reinterpret_cast<char*>(peer.in), reinterpret_cast<char*>(peer.out), isRemote});
  return {};
}

NetRegions::Place NetRegions::placeOf(uint32_t peer, uint32_t channel, bool sends) const {
  const bool isPair = channel >= slots_.channels;
  const uint32_t of = isPair ? channel - slots_.channels : channel;
  const uint64_t at = isPair ? regionOffset(slots_, of) : of * ringRegionBytes(slots_);
  const uint64_t first = isPair ? slotOffset(0, slots_) : kRegionHeaderBytes;
  const Peer regions = this->of(peer);
  std::byte* const out = (isPair ? regions.out : regions.ringOut) + at;
  std::byte* const in = (isPair ? regions.in : regions.ringIn) + at;
  return {.data = reinterpret_cast<Region*>(sends ? out : in),
          .credit = reinterpret_cast<Region*>(sends ? in : out),
          .slots = (sends ? out : in) + first,
          .lines = isPair ? (sends ? out : in) + slotOffset(1, slots_) : nullptr,
          .steps = isPair ? slots_.pairSteps : slots_.ringSteps,
          .stride = slotStride(slots_, isPair ? pairStepBytes(slots_, of) : slots_.ringStepBytes)};
}

// Kernels find them by Region::gpuSlots.
Status NetRegions::placeInGpu(uint32_t peer, uint32_t channels, bool isPair) {
  for (uint32_t index = 0; directs_ && index < channels; index++) {
    const uint32_t channel = deviceChannel(index, slots_.channels, isPair);
    for (const bool sends : {true, false}) {
      const GpuDirect::Use use = useOf_(peer, channel, sends);
      if (!(sends ? use.sends : use.receives)) continue;
      const Place place = placeOf(peer, channel, sends);
      InGpu& made = inGpu_[{peer, channel, sends}];
      made.flushes = use.flushes;
      NCCLRUN_TRY(gpuSlots_.take(uint64_t(place.steps) * place.stride, made.range));
      if (!use.byDmaBuf) made.range.dmaBuf = -1;
      place.data->gpuSlots = reinterpret_cast<char*>(made.range.address) + kNetHeaderBytes;
    }
  }
  return {};
}

DeviceRing NetRegions::ringInHost(const Place& place) const {
  return {.posts = place.data->posts,
          .tail = &place.data->tail,
          .head = &place.credit->head[0],
          .slots = place.slots + kUnused,
          .stride = place.stride,
          .bytes = uint64_t(place.steps) * place.stride - kUnused,
          .lines = place.lines,
          .lineStride = slots_.llStepBytes};
}

DeviceRing NetRegions::ringOf(uint32_t peer, uint32_t channel, bool sends) {
  DeviceRing ring = ringInHost(placeOf(peer, channel, sends));
  const auto found = inGpu_.find({peer, channel, sends});
  if (found == inGpu_.end()) return ring;
  const auto& [range, flushes] = found->second;
  ring.slots = range.address + kUnused;
  ring.gpu = {.dmaBuf = range.dmaBuf, .offset = range.offset + kUnused, .flushes = flushes};
  return ring;
}

DeviceRing NetRegions::ringOfGroup(uint32_t channel, bool sends, bool inHost) {
  const uint32_t number = deviceChannel(channel, slots_.channels, true);
  const Place place = placeOf(rank_, number, sends);
  if (inHost) place.data->gpuSlots = nullptr;
  DeviceRing ring = inHost ? ringInHost(place) : ringOf(rank_, number, sends);
  ring.lines = nullptr;
  return ring;
}

void NetRegions::setHandlers(OnGone onGone, OnCall onCall) {
  std::lock_guard lock(mutex_);
  onGone_ = std::move(onGone);
  onCall_ = std::move(onCall);
}

void NetRegions::onCall(uint32_t peer, const StepCall& call) {
  std::lock_guard lock(mutex_);
  if (onCall_) onCall_(peer, call);
}

void NetRegions::pass(uint32_t peer, const Status& why, bool hasAborted) {
  std::lock_guard lock(mutex_);
  if (onGone_) onGone_(peer, why, hasAborted);
}

void NetRegions::onLeft(uint32_t peer, uint64_t collectives) {
  std::lock_guard lock(mutex_);
  left_[peer] = collectives;
  anyLeft_.store(true, std::memory_order_release);
}

uint64_t NetRegions::leftAt(uint32_t peer) const {
  if (!anyLeft()) return 0;
  std::lock_guard lock(mutex_);
  const auto found = left_.find(peer);
  return found == left_.end() ? 0 : found->second;
}

}  // namespace ncclrun::cuda
