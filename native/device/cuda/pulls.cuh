// Folding what lies in all ranks' buffers: bulk copies load it from there into the block's memory, a piece of each buffer
// at a time, while the workers fold the pieces before. So few blocks read as much as an NVLink carries.
#pragma once
#include "algorithm/work.h"
#include "device/cuda/bulk_copies.cuh"
#include "device/cuda/ends.cuh"

namespace ncclrun::cuda {

// What a launch of Routine::reducePulled has beside: launch_format.h knows how much.
struct PullSpace {
  alignas(128) char places[kPulledPlaces][kPulledBytes];
  uint64_t arrivals[kPulledPlaces][kMaxPeers];
};
static_assert(sizeof(PullSpace) <= kPullSpaceBytes);

__device__ __forceinline__ PullSpace& pullSpace() {
  NCCLRUN_DYNAMIC_SHARED(PullSpace, space);
  return space;
}

// A block's share, in pieces.
class Pulls {
 public:
  __device__ Pulls(const Launch& launch, const Work& w)
      : launch_(launch), w_(w), pieceBytes_(kPulledBytes / w.ranks / 128 * 128), bytes_(w.count * w.elementBytes) {
    const size_t all = (bytes_ + pieceBytes_ - 1) / pieceBytes_, most = (all + w.blocks - 1) / w.blocks;
    first_ = lesser(all, w.block * most);
    pieces_ = uint32_t(lesser(most, all - first_));
    uintptr_t bits = reinterpret_cast<uintptr_t>(w.receive);
    for (uint32_t rank = 0; rank < w.ranks; rank++) bits |= reinterpret_cast<uintptr_t>(buffer(rank));
    isEven_ = kHasBulkCopies && bits % 16 == 0;
  }

  __device__ uint32_t pieces() const { return pieces_; }
  __device__ size_t begin(uint32_t piece) const { return (first_ + piece) * pieceBytes_; }
  __device__ uint32_t bytes(uint32_t piece) const { return uint32_t(lesser(pieceBytes_, bytes_ - begin(piece))); }
  // Whether it comes into the block's memory.
  __device__ bool isLoaded(uint32_t piece) const { return isEven_ && bytes(piece) % 16 == 0; }
  // Where a rank's is read.
  __device__ const char* source(uint32_t piece, uint32_t rank) const {
    return isLoaded(piece) ? place(piece, rank) : buffer(rank) + begin(piece);
  }

  // By one thread, all of these.
  __device__ void beginLoads() const {
    for (auto& arrivals : pullSpace().arrivals) {
      for (uint32_t rank = 0; rank < w_.ranks; rank++) BulkCopies::begin(&arrivals[rank]);
    }
    BulkCopies::order();
  }
  __device__ void load(BulkCopies& copies, uint32_t piece) const {
    if (piece >= pieces_ || !isLoaded(piece)) return;
    for (uint32_t i = 0; i < w_.ranks; i++) {
      const uint32_t rank = w_.rank + i < w_.ranks ? w_.rank + i : w_.rank + i - w_.ranks;
      copies.load(place(piece, rank), buffer(rank) + begin(piece), bytes(piece), &arrival(piece, rank));
    }
  }
  __device__ void awaitLoad(BulkCopies& copies, uint32_t piece) const {
    if (!isLoaded(piece)) return;
    for (uint32_t rank = 0; rank < w_.ranks; rank++) copies.awaitLoad(&arrival(piece, rank), piece / kPulledPlaces);
  }
  __device__ void endLoads() const {
    for (auto& arrivals : pullSpace().arrivals) {
      for (uint32_t rank = 0; rank < w_.ranks; rank++) BulkCopies::end(&arrivals[rank]);
    }
  }

 private:
  __device__ const char* buffer(uint32_t rank) const { return rank == w_.rank ? w_.send : launch_.in[rank]; }
  __device__ char* place(uint32_t piece, uint32_t rank) const {
    return pullSpace().places[piece % kPulledPlaces] + rank * pieceBytes_;
  }
  __device__ uint64_t& arrival(uint32_t piece, uint32_t rank) const {
    return pullSpace().arrivals[piece % kPulledPlaces][rank];
  }

  const Launch& launch_;
  const Work& w_;
  const uint32_t pieceBytes_;
  const size_t bytes_;
  size_t first_;
  uint32_t pieces_;
  bool isEven_;
};

}  // namespace ncclrun::cuda
