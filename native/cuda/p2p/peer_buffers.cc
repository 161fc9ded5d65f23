#include "cuda/p2p/peer_buffers.h"

#include <algorithm>
#include <cstring>

#include "cuda/p2p/process_token.h"

namespace ncclrun::cuda {

PeerBuffers::PeerBuffers(const Gpu& gpu, const Segment& segment, uint32_t ownLocal)
    : gpu_(gpu), segment_(segment), ownLocal_(ownLocal) {
  const OnGpu here(gpu_);
  size_t unused = 0, total = 0;
  if (driver().memGetInfo(&unused, &total) == kSuccess) maxBytes_ = total / kPartOfMemory;
}

PeerBuffers::~PeerBuffers() {
  const OnGpu here(gpu_);
  for (const auto& [key, opened] : opened_) driver().ipcCloseMemHandle(opened.base);
}

bool PeerBuffers::describe(const void* address, BufferLocation& out) {
  const Driver& cuda = driver();
  const auto pointer = reinterpret_cast<Pointer>(address);
  Pointer base = 0;
  size_t bytes = 0;
  int shareable = 0;
  unsigned long long allocation = 0;
  if (cuda.memGetAddressRange(&base, &bytes, pointer) != kSuccess ||
      cuda.pointerGetAttribute(&allocation, kPointerBufferId, pointer) != kSuccess)
    return false;
  auto found = own_.find(allocation);
  if (found == own_.end()) {
    if (cuda.pointerGetAttribute(&shareable, kPointerIsLegacyIpcCapable, pointer) != kSuccess || shareable == 0)
      return false;
    Own own{base, {}};
    if (cuda.ipcGetMemHandle(&own.handle, base) != kSuccess) return false;
    if (own_.size() == kMax) own_.clear();  // they are found out again
    found = own_.emplace(allocation, own).first;
  }
  out = {allocation, base, pointer - base, {}};
  std::memcpy(out.ipcHandle, &found->second.handle, sizeof out.ipcHandle);
  return true;
}

void PeerBuffers::release(const void* address) {
  unsigned long long allocation = 0;
  const auto pointer = reinterpret_cast<Pointer>(address);
  if (driver().pointerGetAttribute(&allocation, kPointerBufferId, pointer) != kSuccess) return;
  if (own_.erase(allocation) > 0) publishReleases();
}

PeerBuffers::Position PeerBuffers::close(Position position) {
  driver().ipcCloseMemHandle(position->second.base);
  peers_[position->first.first].bytes -= position->second.bytes;
  return opened_.erase(position);
}

void PeerBuffers::closeOldest(const std::function<bool(uint32_t local)>& of) {
  auto oldest = opened_.end();
  for (auto one = opened_.begin(); one != opened_.end(); ++one) {
    const bool older = oldest == opened_.end() || one->second.used < oldest->second.used;
    if (of(one->first.first) && older) oldest = one;
  }
  if (oldest != opened_.end()) close(oldest);
}

bool PeerBuffers::isSurplus(uint32_t local, const Peer& peer) const {
  const auto isIts = [&](const auto& one) { return one.first.first == local; };
  const bool tookBack = segment_.doorbell(local).releases.load(std::memory_order_acquire) != peer.seen;
  if (tookBack) return peer.bytes > 0;
  return peer.bytes > maxBytes_ && std::count_if(opened_.begin(), opened_.end(), isIts) > 1;
}

void PeerBuffers::closeSurplus(const Idle& idle) {
  const auto isAny = [this](const auto& one) { return isSurplus(one.first, one.second); };
  if (std::none_of(peers_.begin(), peers_.end(), isAny) || !idle()) return;
  for (auto& [local, peer] : peers_) {
    const uint32_t now = segment_.doorbell(local).releases.load(std::memory_order_acquire);
    const bool all = now != std::exchange(peer.seen, now);
    for (auto one = opened_.begin(); all && one != opened_.end();) one = one->first.first == local ? close(one) : ++one;
    while (isSurplus(local, peer)) closeOldest([local = local](uint32_t other) { return other == local; });
  }
}

void PeerBuffers::tidy(const Idle& idle) {
  const size_t before = own_.size();
  std::erase_if(own_, [](const auto& one) {
    unsigned long long there = 0;
    return driver().pointerGetAttribute(&there, kPointerBufferId, one.second.base) != kSuccess || there != one.first;
  });
  if (own_.size() != before) publishReleases();
  closeSurplus(idle);
}

bool PeerBuffers::reach(uint32_t local, const BufferLocation& location, const Idle& idle, Pointer& out) {
  out = location.base + location.offset;
  if (location.allocation == 0 || segment_.deviceRecord(local).process == processToken()) return true;
  const auto found = opened_.find({local, location.allocation});
  if (found != opened_.end()) {
    found->second.used = ++uses_;
    out = found->second.base + location.offset;
    return true;
  }
  if (opened_.size() == kMax) {
    if (!idle()) return false;
    closeOldest([](uint32_t) { return true; });
  }
  IpcHandle handle;
  std::memcpy(&handle, location.ipcHandle, sizeof handle);
  Opened opened{0, 0, ++uses_};
  if (driver().ipcOpenMemHandle(&opened.base, handle, kIpcLazyPeerAccess) != kSuccess) return false;
  Pointer base = 0;
  size_t bytes = 0;
  opened.bytes = driver().memGetAddressRange(&base, &bytes, opened.base) == kSuccess ? bytes : 1;
  const auto taken = segment_.doorbell(local).releases.load(std::memory_order_acquire);
  peers_.try_emplace(local, Peer{taken, 0}).first->second.bytes += opened.bytes;
  opened_.emplace(Key{local, location.allocation}, opened);
  out = opened.base + location.offset;
  return true;
}

}  // namespace ncclrun::cuda
