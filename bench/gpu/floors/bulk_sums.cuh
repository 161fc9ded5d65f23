// Bulk copies that bring a peer's operands through the block's memory.
#pragma once
#include "cuda/kernels/bulk_copies.cuh"
#include "sums.cuh"

extern __shared__ __align__(128) char shared[];

// Pushes the block's share piece by piece. kAhead pieces are loaded before the oldest one is stored, at target +
// at(bytes stored before). One thread of the block calls this.
template <uint32_t kPiece, uint32_t kPlaces, uint32_t kAhead, class At>
__device__ void pushPieces(const Sum& all, At&& at) {
  using ncclrun::cuda::BulkCopies;
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  auto* arrivals = reinterpret_cast<uint64_t*>(shared + kPlaces * kPiece);
  for (uint32_t i = 0; i < kPlaces; i++) BulkCopies::begin(&arrivals[i]);
  BulkCopies::order();
  BulkCopies copies;
  const auto pieces = uint32_t(share / kPiece);
  for (uint32_t i = 0; i < pieces + kAhead; i++) {
    if (i < pieces) {
      copies.awaitStoresRead<kPlaces - kAhead - 1>();
      copies.load(shared + i % kPlaces * kPiece, all.sent + begin + size_t(i) * kPiece, kPiece, &arrivals[i % kPlaces]);
    }
    if (i < kAhead) continue;
    const uint32_t stored = i - kAhead;
    copies.await(&arrivals[stored % kPlaces], stored / kPlaces);
    copies.store(all.target + at(size_t(stored) * kPiece), shared + stored % kPlaces * kPiece, kPiece);
  }
  copies.awaitStores<0>();
}

// Loads the block's share of the peer's and of its own operands, and adds them. All threads of the block call this.
template <uint32_t kPiece, uint32_t kStages>
__device__ void pullPieces(const Sum& all) {
  using ncclrun::cuda::BulkCopies;
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  const auto pieces = uint32_t(share / kPiece);
  auto* arrivals = reinterpret_cast<uint64_t*>(shared + 2 * kStages * kPiece);
  BulkCopies copies;
  const auto ask = [&](uint32_t piece) {
    if (piece >= pieces || threadIdx.x != 0) return;
    const size_t from = begin + size_t(piece) * kPiece;
    char* const to = shared + piece % kStages * 2 * kPiece;
    uint64_t* const arrival = &arrivals[piece % kStages * 2];
    copies.load(to, all.theirs + from, kPiece, arrival);
    copies.load(to + kPiece, all.own + from, kPiece, arrival + 1);
  };
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < 2 * kStages; i++) BulkCopies::begin(&arrivals[i]);
    BulkCopies::order();
  }
  __syncthreads();
  for (uint32_t i = 0; i < kStages; i++) ask(i);
  for (uint32_t i = 0; i < pieces; i++) {
    for (uint32_t which : {0, 1}) copies.await(&arrivals[i % kStages * 2 + which], i / kStages);
    const char* const theirs = shared + i % kStages * 2 * kPiece;
    addAll<4>(theirs + kPiece, theirs, all.out + begin + size_t(i) * kPiece, kPiece, kThreads, kPiece);
    __syncthreads();
    ask(i + kStages);
  }
}
