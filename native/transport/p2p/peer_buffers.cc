#include "transport/p2p/peer_buffers.h"

#include <algorithm>
#include <cstring>

#include "transport/p2p/process_token.h"

namespace ncclrun::cuda {

PeerBuffers::~PeerBuffers() {
  const OnGpu here(gpu_);
  for (const auto& [key, opened] : opened_) driver().ipcCloseMemHandle(opened.base);
}

bool PeerBuffers::describe(const void* address, BufferPlace& out) {
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
    if (own_.size() == kMost) own_.clear();  // they are found out again
    found = own_.emplace(allocation, own).first;
  }
  out = {allocation, base, pointer - base, {}};
  std::memcpy(out.ipcHandle, &found->second.handle, sizeof out.ipcHandle);
  return true;
}

void PeerBuffers::closeOldest() {
  const auto oldest = std::min_element(opened_.begin(), opened_.end(), [](const auto& one, const auto& other) {
    return one.second.used < other.second.used;
  });
  driver().ipcCloseMemHandle(oldest->second.base);
  opened_.erase(oldest);
}

bool PeerBuffers::reach(uint32_t local, const BufferPlace& place, const std::function<bool()>& idle, Pointer& out) {
  out = place.base + place.offset;
  if (place.allocation == 0 || segment_.deviceRecord(local).process == processToken()) return true;
  const auto found = opened_.find({local, place.allocation});
  if (found != opened_.end()) {
    found->second.used = ++uses_;
    out = found->second.base + place.offset;
    return true;
  }
  if (opened_.size() == kMost) {
    if (!idle()) return false;
    closeOldest();
  }
  IpcHandle handle;
  std::memcpy(&handle, place.ipcHandle, sizeof handle);
  Opened opened{0, ++uses_};
  if (driver().ipcOpenMemHandle(&opened.base, handle, kIpcLazyPeerAccess) != kSuccess) return false;
  opened_.emplace(Key{local, place.allocation}, opened);
  out = opened.base + place.offset;
  return true;
}

}  // namespace ncclrun::cuda
