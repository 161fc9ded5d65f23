// Moves that only send, by bulk copies: from the user's buffer into the block's memory, and on into the peer's slot.
// One thread asks for them; meanwhile the workers fold what is received. So few blocks fill an NVLink.
#pragma once
#include "cuda/kernels/bulk_copies.cuh"
#include "cuda/kernels/ends.cuh"
#include "cuda/kernels/move.cuh"

namespace ncclrun::cuda {

// What a launch whose kernel has protocol Simple has beside: launch_format.h knows how much.
struct BulkSpace {
  struct Kept {
    uint32_t asked, stored;  // pieces
    uint32_t toldAt;         // when so many are stored, the last move's step is told; 0: it is
    uint32_t lastBytes;      // of its last piece
    uint32_t bytes, connection, step;
    char* to;  // where the next of its pieces goes
  };
  alignas(128) char places[kBulkPlaces][kBulkBytes];
  uint64_t arrivals[kBulkPlaces];
  Kept kept;
};
static_assert(sizeof(BulkSpace) <= kBulkSpaceBytes);

__device__ __forceinline__ BulkSpace& bulkSpace() {
  NCCLRUN_DYNAMIC_SHARED(BulkSpace, space);
  return space;
}

// By one thread of a block. What it keeps from one move to the next lies in the block's memory, what changes with every
// piece in registers.
class BulkSends {
 public:
  // Whether a move is one of these: all threads of all blocks agree.
  static __device__ __forceinline__ bool takes(const Launch& launch, const Move& move) {
    if (!kHasBulkCopies || move.froms > 0 || move.tos != 1 || move.target != nullptr) return false;
    const uint64_t bytes = move.count * launch.elementBytes;
    const bool isEven = (reinterpret_cast<uintptr_t>(move.own) | bytes) % 16 == 0;
    return isEven && bytes >= kLeastPieces * kBulkBytes && launch.kind % kFolds != uint8_t(Fold::preMulSum);
  }

  static __device__ __forceinline__ void begin() { bulkSpace().kept = {}; }

  // The source is read until end().
  static __device__ __noinline__ void send(const Launch& launch, Ends& ends, BulkCopies& copies, const Move& move,
                                           uint32_t step) {
    BulkSpace& space = bulkSpace();
    End& connection = ends.sends[move.to];
    if (!awaitSlot(launch, ends, copies, connection, step)) return;
    Kept kept = space.kept;
    if (kept.asked == 0) {
      for (uint64_t& arrival : space.arrivals) BulkCopies::begin(&arrival);
      BulkCopies::order();
    }
    const auto bytes = uint32_t(move.count * launch.elementBytes);
    const auto* from = static_cast<const char*>(move.own);
    char* to = connection.slots + uint64_t(step & (ends.steps - 1)) * ends.stepBytes;
    for (uint32_t left = bytes; left > 0;) {
      if (kept.asked - kept.stored == kAhead) {
        store(space, copies, kept, to);
        if (kept.stored == kept.toldAt) tell<kOnTheWay>(launch, ends, copies, kept);
      }
      copies.awaitStoresRead<kBulkPlaces - kAhead>();  // what the place had before
      const uint32_t piece = left < kBulkBytes ? left : kBulkBytes;
      const uint32_t place = kept.asked % kBulkPlaces;
      copies.load(space.places[place], from, piece, &space.arrivals[place]);
      kept.asked++;
      from += piece;
      left -= piece;
    }
    kept.to = to;
    kept.lastBytes = (bytes - 1) % kBulkBytes + 1;
    kept.toldAt = kept.asked + kOnTheWay;
    kept.connection = move.to;
    kept.step = step;
    kept.bytes = bytes;
    space.kept = kept;
  }

  // All that was sent is there, and told.
  static __device__ __noinline__ void end(const Launch& launch, Ends& ends, BulkCopies& copies) {
    BulkSpace& space = bulkSpace();
    if (space.kept.asked == 0) return;
    settle(launch, ends, copies);
    for (uint64_t& arrival : space.arrivals) BulkCopies::end(&arrival);
    space.kept = {};
  }

 private:
  using Kept = BulkSpace::Kept;

  // Pieces that are loaded before the oldest is stored; stored ones that may not be there yet when an older step is
  // told.
  static constexpr uint32_t kAhead = 3, kOnTheWay = 4;
  static constexpr uint32_t kLeastPieces = kAhead + kOnTheWay + 1;  // so that each step is told during the next one
  static_assert(kAhead < kBulkPlaces);

  // False: aborted.
  static __device__ __forceinline__ bool awaitSlot(const Launch& launch, Ends& ends, BulkCopies& copies, End& end,
                                                   uint32_t step) {
    if (!reached(end.freed + ends.steps, step + 1)) {
      if (const uint32_t freed = loadVolatile(end.head); reached(freed + ends.steps, step + 1)) {
        end.freed = loadAcquire(end.head);
      } else {
        settle(launch, ends, copies);
        Patience patience(launch, ends);
        awaitCredit(end, step, ends.steps, patience);
      }
      BulkCopies::order();
    }
    return !*static_cast<volatile bool*>(&ends.aborted);
  }

  // The oldest piece: one of the last move's, or the next of the one at `to`.
  static __device__ __forceinline__ void store(BulkSpace& space, BulkCopies& copies, Kept& kept, char*& to) {
    const uint32_t place = kept.stored % kBulkPlaces;
    copies.await(&space.arrivals[place], kept.stored / kBulkPlaces);
    const uint32_t ofLastMove = kept.toldAt - kOnTheWay - kept.stored;  // how many are left
    if (kept.toldAt > 0 && int32_t(ofLastMove) > 0) {
      copies.store(kept.to, space.places[place], ofLastMove == 1 ? kept.lastBytes : kBulkBytes);
      kept.to += kBulkBytes;
    } else {
      copies.store(to, space.places[place], kBulkBytes);
      to += kBulkBytes;
    }
    kept.stored++;
  }

  static __device__ __noinline__ void settle(const Launch& launch, Ends& ends, BulkCopies& copies) {
    BulkSpace& space = bulkSpace();
    Kept kept = space.kept;
    char* none = nullptr;
    while (kept.stored != kept.asked) store(space, copies, kept, none);
    if (kept.toldAt > 0) tell<0>(launch, ends, copies, kept);
    space.kept = kept;
  }

  // The last move's step is there once all but the latest kLatest pieces are.
  template <uint32_t kLatest>
  static __device__ __forceinline__ void tell(const Launch& launch, Ends& ends, BulkCopies& copies, Kept& kept) {
    copies.awaitStores<kLatest>();
    Patience patience(launch, ends);
    handOnStep(ends.sends[kept.connection], kept.step, kept.bytes, patience);
    kept.toldAt = 0;
  }
};

}  // namespace ncclrun::cuda
