#include "binding/staging.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace ncclrun::binding {

namespace {

// Pinned pages that nobody uses. Kept: freeing them might wait for a GPU, on the event loop.
struct Spare {
  std::mutex mutex;
  std::vector<void*> pages;
};

Spare& spare() {
  static auto& once = *new Spare;  // never destroyed: streams may end while the process does
  return once;
}

}  // namespace

Staging::~Staging() {
  if (pages_ == nullptr) return;
  const std::lock_guard lock(spare().mutex);
  spare().pages.push_back(pages_);
}

ncclResult_t Staging::allocate() {
  {
    const std::lock_guard lock(spare().mutex);
    if (!spare().pages.empty()) {
      pages_ = spare().pages.back();
      spare().pages.pop_back();
      return ncclSuccess;
    }
  }
  return ncclrunGpuHostAlloc(&pages_, kBytes);
}

void Staging::carry(void* piece) {
  const auto& [to, from, bytes] = *static_cast<const Piece*>(piece);
  std::memcpy(to, from, bytes);
}

ncclResult_t Staging::copyTo(char* gpuMemory, char* array, size_t bytes, cudaStream_t stream,
                             std::vector<std::shared_ptr<void>>& kept) {
  const auto pieces = std::make_shared<std::vector<Piece>>();
  for (size_t done = 0; done < bytes; done += kBytes)
    pieces->push_back({static_cast<char*>(pages_), array + done, std::min(kBytes, bytes - done)});
  kept.push_back(pieces);
  for (Piece& piece : *pieces) {
    const size_t done = static_cast<size_t>(piece.from - array);
    ncclResult_t result = ncclrunGpuStreamCallback(stream, carry, &piece);
    if (result == ncclSuccess) result = ncclrunGpuCopy(gpuMemory + done, pages_, piece.bytes, stream);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

ncclResult_t Staging::copyFrom(const char* gpuMemory, char* array, size_t bytes, cudaStream_t stream,
                               std::vector<std::shared_ptr<void>>& kept) {
  const auto pieces = std::make_shared<std::vector<Piece>>();
  for (size_t done = 0; done < bytes; done += kBytes)
    pieces->push_back({array + done, static_cast<char*>(pages_), std::min(kBytes, bytes - done)});
  kept.push_back(pieces);
  for (Piece& piece : *pieces) {
    const size_t done = static_cast<size_t>(piece.to - array);
    ncclResult_t result = ncclrunGpuCopy(pages_, gpuMemory + done, piece.bytes, stream);
    if (result == ncclSuccess) result = ncclrunGpuStreamCallback(stream, carry, &piece);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

}  // namespace ncclrun::binding
