// Executes moves that only send by bulk copies: from the user's buffer into shared memory, and on into the peer's slot.
// One thread issues them while the workers reduce received data. So few blocks saturate an NVLink.
#pragma once
#include "cuda/kernels/bulk_copies.cuh"
#include "cuda/kernels/connections.cuh"
#include "cuda/kernels/move.cuh"

namespace ncclrun::cuda {

// Dynamic shared memory of a kernel of protocol Simple; launch_format.h has its size.
struct BulkSpace {
  struct Progress {
    uint32_t loaded, stored;  // pieces
    uint32_t postAt;          // when so many are stored, the last move's step is posted; 0: it has been posted
    uint32_t lastBytes;       // bytes of its last piece
    uint32_t bytes, connection, step;
    char* to;  // destination of its next piece
  };
  alignas(128) char stages[kBulkStages][kBulkBytes];
  uint64_t arrivals[kBulkStages];
  Progress progress;
};
static_assert(sizeof(BulkSpace) <= kBulkSpaceBytes);

__device__ __forceinline__ BulkSpace& bulkSpace() {
  NCCLRUN_DYNAMIC_SHARED(BulkSpace, space);
  return space;
}

// Used by one thread of a block. State that outlives a move lies in shared memory; state that changes with every piece
// stays in registers.
class BulkSends {
 public:
  // True if bulk copies execute the move; all threads of all blocks agree.
  static __device__ __forceinline__ bool takes(const Launch& launch, const Move& move) {
    if (!kHasBulkCopies || move.receiveCount > 0 || move.sendCount != 1 || move.target != nullptr) return false;
    const uint64_t bytes = move.count * launch.elementBytes;
    const bool isEven = (reinterpret_cast<uintptr_t>(move.own) | bytes) % 16 == 0;
    return isEven && bytes >= kMinPieces * kBulkBytes && launch.opIndex % kRedOps != uint8_t(RedOp::preMulSum);
  }

  static __device__ __forceinline__ void begin() { bulkSpace().progress = {}; }

  // The source is read until end().
  static __device__ __noinline__ void send(const Launch& launch, Connections& connections, BulkCopies& copies,
                                           const Move& move, uint32_t step) {
    BulkSpace& space = bulkSpace();
    ConnectionState& connection = connections.sends[move.to];
    if (!awaitSlot(launch, connections, copies, connection, step)) return;
    Progress progress = space.progress;
    if (progress.loaded == 0) {
      for (uint64_t& arrival : space.arrivals) BulkCopies::begin(&arrival);
      BulkCopies::order();
    }
    const auto bytes = uint32_t(move.count * launch.elementBytes);
    const auto* from = static_cast<const char*>(move.own);
    char* to = connection.slots + uint64_t(step & (connections.steps - 1)) * connections.stride;
    for (uint32_t left = bytes; left > 0;) {
      if (progress.loaded - progress.stored == kAhead) {
        store(space, copies, progress, to);
        if (progress.stored == progress.postAt) publishStep<kOnTheWay>(launch, connections, copies, progress);
      }
      copies.awaitStoresRead<kBulkStages - kAhead>();  // the stage's previous piece
      const uint32_t piece = left < kBulkBytes ? left : kBulkBytes;
      const uint32_t stage = progress.loaded % kBulkStages;
      copies.load(space.stages[stage], from, piece, &space.arrivals[stage]);
      progress.loaded++;
      from += piece;
      left -= piece;
    }
    progress.to = to;
    progress.lastBytes = (bytes - 1) % kBulkBytes + 1;
    progress.postAt = progress.loaded + kOnTheWay;
    progress.connection = move.to;
    progress.step = step;
    progress.bytes = bytes;
    space.progress = progress;
  }

  // Completes and posts all sends.
  static __device__ __noinline__ void end(const Launch& launch, Connections& connections, BulkCopies& copies) {
    BulkSpace& space = bulkSpace();
    if (space.progress.loaded == 0) return;
    settle(launch, connections, copies);
    for (uint64_t& arrival : space.arrivals) BulkCopies::end(&arrival);
    space.progress = {};
  }

 private:
  using Progress = BulkSpace::Progress;

  // Pieces that are loaded before the oldest is stored; stored pieces that may be incomplete when an older step is
  // posted.
  static constexpr uint32_t kAhead = 3, kOnTheWay = 4;
  static constexpr uint32_t kMinPieces = kAhead + kOnTheWay + 1;  // so that each step is posted during the next one
  static_assert(kAhead < kBulkStages);

  // False: aborted.
  static __device__ __forceinline__ bool awaitSlot(const Launch& launch, Connections& connections, BulkCopies& copies,
                                                   ConnectionState& connection, uint32_t step) {
    if (!reached(connection.freed + connections.steps, step + 1)) {
      if (const uint32_t freed = loadVolatile(connection.head); reached(freed + connections.steps, step + 1)) {
        connection.freed = loadAcquire(connection.head);
      } else {
        settle(launch, connections, copies);
        SpinWait spin(launch, connections);
        awaitCredit(connection, step, connections.steps, spin);
      }
      BulkCopies::order();
    }
    return !*static_cast<volatile bool*>(&connections.aborted);
  }

  // Stores the oldest piece: one of the last move's, or the next of the move at `to`.
  static __device__ __forceinline__ void store(BulkSpace& space, BulkCopies& copies, Progress& progress, char*& to) {
    const uint32_t stage = progress.stored % kBulkStages;
    copies.await(&space.arrivals[stage], progress.stored / kBulkStages);
    const uint32_t ofLastMove = progress.postAt - kOnTheWay - progress.stored;  // how many are left
    if (progress.postAt > 0 && int32_t(ofLastMove) > 0) {
      copies.store(progress.to, space.stages[stage], ofLastMove == 1 ? progress.lastBytes : kBulkBytes);
      progress.to += kBulkBytes;
    } else {
      copies.store(to, space.stages[stage], kBulkBytes);
      to += kBulkBytes;
    }
    progress.stored++;
  }

  static __device__ __noinline__ void settle(const Launch& launch, Connections& connections, BulkCopies& copies) {
    BulkSpace& space = bulkSpace();
    Progress progress = space.progress;
    char* none = nullptr;
    while (progress.stored != progress.loaded) store(space, copies, progress, none);
    if (progress.postAt > 0) publishStep<0>(launch, connections, copies, progress);
    space.progress = progress;
  }

  // Posts the last move's step, which is complete once all but the latest kLatest pieces are.
  template <uint32_t kLatest>
  static __device__ __forceinline__ void publishStep(const Launch& launch, Connections& connections, BulkCopies& copies,
                                                     Progress& progress) {
    copies.awaitStores<kLatest>();
    SpinWait spin(launch, connections);
    postStep(connections, connections.sends[progress.connection], progress.step, progress.bytes, spin);
    progress.postAt = 0;
  }
};

}  // namespace ncclrun::cuda
