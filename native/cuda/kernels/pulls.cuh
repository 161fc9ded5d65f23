// Reduces the operands in all ranks' buffers: bulk copies load them into shared memory, a piece of each buffer at a
// time, while the workers reduce the pieces before. So few blocks saturate an NVLink.
#pragma once
#include "algorithm/work.h"
#include "cuda/kernels/arithmetic.cuh"
#include "cuda/kernels/bulk_copies.cuh"
#include "cuda/kernels/connections.cuh"

namespace ncclrun::cuda {

// Dynamic shared memory of a launch of Routine::reducePulled; launch_format.h has its size.
struct PullSpace {
  alignas(128) char stages[kPullStages][kPullStageBytes];
  uint64_t loaded[kPullStages], reduced[kPullStages];
};
static_assert(sizeof(PullSpace) <= kPullSpaceBytes);

__device__ __forceinline__ PullSpace& pullSpace() {
  NCCLRUN_DYNAMIC_SHARED(PullSpace, space);
  return space;
}

// A block's share, in bytes.
class Pulls {
 public:
  __device__ Pulls(const Launch& launch, const Work& w)
      : launch_(launch), own_(w.send), target_(w.receive), rank_(w.rank), ranks_(w.ranks) {
    const size_t all = w.count * w.elementBytes, max = (all / w.blocks + kGrain) / kGrain * kGrain;
    begin_ = lesser(all, w.block * max);
    bytes_ = lesser(max, all - begin_);
    pieceBytes_ = kPullStageBytes / w.ranks / kGrain * kGrain;
    uintptr_t bits = reinterpret_cast<uintptr_t>(w.receive);
    for (uint32_t rank = 0; rank < w.ranks; rank++) bits |= reinterpret_cast<uintptr_t>(source(rank, 0));
    loadedBytes_ = kHasBulkCopies && bits % 16 == 0 ? bytes_ / 16 * 16 : 0;
  }

  __device__ uint32_t ranks() const { return ranks_; }
  __device__ size_t bytes() const { return bytes_; }
  // Leading bytes that are loaded into shared memory, in pieces.
  __device__ size_t loadedBytes() const { return loadedBytes_; }
  __device__ uint32_t pieceBytes() const { return pieceBytes_; }
  __device__ uint32_t pieces() const { return uint32_t((loadedBytes_ + pieceBytes_ - 1) / pieceBytes_); }

  __device__ const char* source(uint32_t rank, size_t at) const {
    return (rank == rank_ ? own_ : launch_.in[rank]) + begin_ + at;
  }
  __device__ char* target(size_t at) const { return target_ + begin_ + at; }

  // One thread calls both.
  __device__ void beginLoads(uint32_t workers) const {
    for (uint64_t& loaded : pullSpace().loaded) BulkCopies::begin(&loaded, ranks_);
    for (uint64_t& reduced : pullSpace().reduced) BulkCopies::begin(&reduced, workers / 32);
    BulkCopies::order();
  }
  __device__ void endLoads() const {
    for (uint64_t& loaded : pullSpace().loaded) BulkCopies::end(&loaded);
    for (uint64_t& reduced : pullSpace().reduced) BulkCopies::end(&reduced);
  }
  // Called by one thread for each rank.
  __device__ void loadAll(BulkCopies& copies, uint32_t rank) const {
    const uint32_t count = pieces();
    for (uint32_t piece = 0; piece < count; piece++) {
      const uint32_t phase = piece / kPullStages;
      if (phase > 0) copies.await(&pullSpace().reduced[piece % kPullStages], phase - 1);
      const size_t at = size_t(piece) * pieceBytes_;
      copies.load(stage(piece, rank), source(rank, at), uint32_t(lesser(pieceBytes_, loadedBytes_ - at)),
                  &pullSpace().loaded[piece % kPullStages]);
    }
  }
  // Called by the workers, whose warps are at most as far apart as there are stages.
  template <class T, class Op>
  __device__ __forceinline__ void reduceLoaded(BulkCopies& copies, const Adjustment<T>& adjust,
                                               uint32_t workers) const {
    constexpr uint32_t kUnroll = sizeof(T) == 1 ? 1 : 3;  // a piece of two ranks has 1024 packs for about 416 workers
    const uint32_t count = pieces();
    for (uint32_t piece = 0; piece < count; piece++) {
      const size_t at = size_t(piece) * pieceBytes_;
      const uint32_t stage = piece % kPullStages, packs = uint32_t(lesser(pieceBytes_, loadedBytes_ - at)) / 16;
      copies.await(&pullSpace().loaded[stage], piece / kPullStages);
      if (ranks_ == 2) {
        reduceStage<T, Op, 2, kUnroll>(stage, target(at), packs, adjust, workers);
      } else {
        reduceStage<T, Op, 0, 1>(stage, target(at), packs, adjust, workers);
      }
      __syncwarp();
      if (threadIdx.x % 32 == 0) BulkCopies::arrive(&pullSpace().reduced[stage]);
    }
  }

 private:
  static constexpr uint32_t kGrain = 128;

  __device__ char* stage(uint32_t piece, uint32_t rank) const {
    return pullSpace().stages[piece % kPullStages] + rank * pieceBytes_;
  }

  // kRanks: number of ranks if it is a compile-time constant, or 0; a worker has kUnroll packs of each rank in flight.
  // Nothing here may spill to local memory: the stages leave it hardly any cache.
  template <class T, class Op, uint32_t kRanks, uint32_t kUnroll>
  __device__ __forceinline__ void reduceStage(uint32_t stage, char* target, uint32_t packs, const Adjustment<T>& adjust,
                                              uint32_t workers) const {
    using Packed = Pack<T, 16>;
    const auto* const loaded = reinterpret_cast<const Packed*>(pullSpace().stages[stage]);
    const uint32_t stride = pieceBytes_ / 16;
    for (uint32_t first = threadIdx.x; first < packs; first += kUnroll * workers) {
      const auto at = [&](uint32_t u) { return first + u * workers; };
      if constexpr (kRanks == 0) {
        reinterpret_cast<Packed*>(target)[first] = reducePacks<T, Op, 16>(
            ranks_, adjust, kAllSources, [&](uint32_t rank) { return loaded[rank * stride + first]; });
      } else {
        Packed packed[kRanks][kUnroll]{};
#pragma unroll
        for (uint32_t rank = 0; rank < kRanks; rank++) {
#pragma unroll
          for (uint32_t u = 0; u < kUnroll; u++) {
            if (at(u) < packs) packed[rank][u] = loaded[rank * stride + at(u)];
          }
        }
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) {
          if (at(u) < packs)
            reinterpret_cast<Packed*>(target)[at(u)] =
                reducePacks<T, Op, 16>(kRanks, adjust, kAllSources, [&](uint32_t rank) { return packed[rank][u]; });
        }
      }
    }
  }

  const Launch& launch_;
  const char* const own_;
  char* const target_;
  const uint32_t rank_, ranks_;
  size_t begin_, bytes_, loadedBytes_;
  uint32_t pieceBytes_;
};

}  // namespace ncclrun::cuda
