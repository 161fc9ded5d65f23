// Protocol Simple: a step is one slot of data, posted by a counter beside the slots.
//
// The warps of a block have four roles: one waits for slots, one posts them, the workers reduce, and one issues bulk
// copies. So the waiting warp polls for a move's slots while the workers reduce the preceding move, and the workers do
// not wait until the peer sees their stores. The copying warp executes the moves that only send; it runs ahead of the
// others as far as there are free slots.
#pragma once
#include "cuda/kernels/arithmetic.cuh"
#include "cuda/kernels/bulk_sends.cuh"
#include "cuda/kernels/connections.cuh"
#include "cuda/kernels/move.cuh"
#include "cuda/kernels/pulls.cuh"
#include "cuda/kernels/steps.cuh"
#include "cuda/kernels/typed_ops.cuh"

namespace ncclrun::cuda {

template <class Ops>
class Simple {
 public:
  static constexpr uint32_t kProtocol = 0;
  using Connections = cuda::Connections;
  static constexpr bool kSingleStep = false;

  __device__ Simple(const Launch& launch, Connections& connections)
      : launch_(launch), connections_(connections), steps_(connections) {
    if (isCopyThread()) BulkSends::begin();
  }

  __device__ uint32_t slotBytes() const { return connections_.stepBytes; }
  __device__ uint32_t slots() const { return connections_.steps; }

  __device__ void move(const Move& move) {
    if (BulkSends::takes(launch_, move)) {
      if (isCopyThread()) BulkSends::send(launch_, connections_, copies_, move, steps_.send(move.to));
    } else if (!isBulkWarp()) {
      execute(move, moves_++);
    }
    if (!steps_.advance(move)) finish();
  }
  // Copies a single rank's contribution. Contains no barrier.
  __device__ __noinline__ void copy(const void* source, void* target, size_t bytes) {
    if (!isWorker()) return;
    Ops::choose(launch_.opIndex, [&]<class T, class Op>() { copyAs<T, Op>(source, target, bytes / sizeof(T)); });
  }

  // Reduces all ranks' operands, which it reads directly from their buffers. Called by all warps of the block.
  __device__ __noinline__ void pull(const Work& w) {
    const Pulls pulls(launch_, w);
    if (isBulkWarp()) {
      if (pulls.pieces() > 0) loadPulled(pulls);
    } else if (isWorker()) {
      if (pulls.pieces() > 0) syncOn(kReady, 0, workers() + 32);
      Ops::choose(launch_.opIndex, [&]<class T, class Op>() { reducePulled<T, Op>(pulls); });
      if (pulls.pieces() > 0) arriveOn(kDone, 0, workers() + 32);
    }
  }

  __device__ void finishSends() { finish(); }
  __device__ void finish() {
    if (isBulkWarp()) {
      if (isCopyThread()) BulkSends::end(launch_, connections_, copies_);
      __syncwarp();
    } else if (moves_ > 0 && threadIdx.x / 32 != workers() / 32 + 1) {
      syncOn(kReady, moves_, workers() + 64);  // the posting warp has already arrived there
    }
    moves_ = 0;
    announced_ = false;
    steps_.write();
  }

 private:
  // Named barriers of the block: two of each, used alternately.
  static constexpr uint32_t kReady = 1;  // all but the copying warp: the move's slots are ready
  static constexpr uint32_t kDone = 3;   // workers and the posting warp: the move is reduced

  static __device__ __forceinline__ void syncOn(uint32_t barrier, uint32_t number, uint32_t threads) {
    barrierSync(barrier + number % 2, threads);
  }
  static __device__ __forceinline__ void arriveOn(uint32_t barrier, uint32_t number, uint32_t threads) {
    barrierArrive(barrier + number % 2, threads);
  }
  static __device__ __forceinline__ uint32_t workers() { return blockDim.x - (kHasBulkCopies ? 96 : 64); }
  static __device__ __forceinline__ bool isWorker() { return threadIdx.x < workers(); }
  static __device__ __forceinline__ bool isBulkWarp() { return threadIdx.x >= workers() + 64; }
  static __device__ __forceinline__ bool isCopyThread() { return kHasBulkCopies && threadIdx.x == workers() + 64; }

  // Called by all warps but the copying one. `number`: number of moves that they have executed since finish().
  __device__ __forceinline__ void execute(const Move& move, uint32_t number) {
    if (isWorker()) {
      syncOn(kReady, number, workers() + 64);
      if (!connections_.aborted) Ops::choose(launch_.opIndex, [&]<class T, class Op>() { moveAs<T, Op>(move); });
      arriveOn(kDone, number, workers() + 32);
    } else if (threadIdx.x / 32 == workers() / 32) {
      waitForSlots(move);
      syncOn(kReady, number, workers() + 64);
    } else {
      // The workers may begin the next move before this warp has posted this one, but no later move.
      if (!announced_) arriveOn(kReady, number, workers() + 64);
      arriveOn(kReady, number + 1, workers() + 64);
      announced_ = true;
      syncOn(kDone, number, workers() + 32);
      post(move);
    }
  }

  template <class T, class Op>
  __device__ __noinline__ void moveAs(const Move& move) {
    const T* sources[kMaxPeers + 1];
    T* targets[kMaxPeers + 1];
    uint32_t sourceCount = 0, targetCount = 0;
    for (uint32_t i = 0; i < move.receiveCount; i++) {
      if (move.own != nullptr && sourceCount == move.ownIndex) sources[sourceCount++] = static_cast<const T*>(move.own);
      sources[sourceCount++] = slotOf<T>(connections_.receives[move.from + i], steps_.receive(move.from + i));
    }
    if (move.own != nullptr && sourceCount == move.receiveCount)
      sources[sourceCount++] = static_cast<const T*>(move.own);
    for (uint32_t i = 0; i < move.sendCount; i++)
      targets[targetCount++] = slotOf<T>(connections_.sends[move.to + i], steps_.send(move.to + i));
    if (move.target != nullptr) targets[targetCount++] = static_cast<T*>(move.target);
    const uint32_t scaled = move.own != nullptr ? move.ownIndex : kNoSource;
    reduce<T, Op>(targets, targetCount, sources, sourceCount, uint32_t(move.count), adjustmentFor<T, Op>(launch_, move),
                  scaled);
  }

  // Called by the warp that issues bulk copies; one lane loads each rank's operand.
  __device__ void loadPulled(const Pulls& pulls) {
    if (isCopyThread()) pulls.beginLoads(workers());
    __syncwarp();
    arriveOn(kReady, 0, workers() + 32);
    const uint32_t lane = threadIdx.x % 32;
    if (lane < pulls.ranks()) pulls.loadAll(copies_, lane);
    __syncwarp();
    syncOn(kDone, 0, workers() + 32);
    if (isCopyThread()) {
      pulls.endLoads();
      BulkSends::begin();  // the loads have overwritten its state, which shares this memory
    }
    __syncwarp();
  }
  // Called by the workers.
  template <class T, class Op>
  __device__ __noinline__ void reducePulled(const Pulls pulls) {
    constexpr size_t kMax = size_t(1) << 28;  // bytes: reduce() counts elements in 32 bits
    const Adjustment<T> adjust = adjustmentOf<T, Op>(launch_);
    pulls.reduceLoaded<T, Op>(copies_, adjust, workers());
    for (size_t at = pulls.loadedBytes(), bytes; at < pulls.bytes(); at += bytes) {
      bytes = lesser(kMax, pulls.bytes() - at);
      const T* sources[kMaxPeers];
      for (uint32_t rank = 0; rank < pulls.ranks(); rank++)
        sources[rank] = reinterpret_cast<const T*>(pulls.source(rank, at));
      T* const targets[1] = {reinterpret_cast<T*>(pulls.target(at))};
      reduce<T, Op>(targets, 1, sources, pulls.ranks(), uint32_t(bytes / sizeof(T)), adjust, kAllSources);
    }
  }

  template <class T, class Op>
  __device__ __noinline__ void copyAs(const void* source, void* target, size_t count) {
    constexpr size_t kMax = size_t(1) << 28;  // elements, which reduce() counts in 32 bits
    for (size_t begin = 0; begin < count; begin += kMax) {
      const T* sources[1] = {static_cast<const T*>(source) + begin};
      T* targets[1] = {static_cast<T*>(target) + begin};
      const auto part = uint32_t(lesser(kMax, count - begin));
      reduce<T, Op>(targets, 1, sources, 1, part, adjustmentOf<T, Op>(launch_), 0);
    }
  }

  // One lane waits for each slot.
  __device__ void waitForSlots(const Move& move) {
    SpinWait spin(launch_, connections_);
    const uint32_t lane = threadIdx.x % 32;
    if (lane < move.receiveCount) {
      const ConnectionState& connection = connections_.receives[move.from + lane];
      const uint32_t wanted = steps_.receive(move.from + lane) + 1;
      while (!reached(loadVolatile(connection.tail), wanted) && !spin.gaveUp()) continue;
      loadAcquire(connection.tail);
    } else if (lane >= kMaxPeers && lane - kMaxPeers < move.sendCount) {
      const uint32_t i = move.to + lane - kMaxPeers;
      awaitCredit(connections_.sends[i], steps_.send(i), connections_.steps, spin);
    }
    __syncwarp();
  }
  // Posts the slots with the lanes that waited for them, after all workers' accesses. Posts nothing after an abort,
  // because the workers have not reduced.
  __device__ void post(const Move& move) {
    if (connections_.aborted) return;
    const uint32_t lane = threadIdx.x % 32;
    const uint64_t bytes = move.count * launch_.elementBytes;
    if (lane < move.receiveCount) {
      ConnectionState& connection = connections_.receives[move.from + lane];
      connection.bytes += bytes;
      storeCredit(connection.head, steps_.receive(move.from + lane) + 1);
    }
    __syncwarp();
    if (lane >= kMaxPeers && lane - kMaxPeers < move.sendCount) {
      SpinWait spin(launch_, connections_);
      const uint32_t i = move.to + lane - kMaxPeers;
      postStep(connections_, connections_.sends[i], steps_.send(i), bytes, spin);
    }
    __syncwarp();
  }

  template <class T>
  __device__ T* slotOf(const ConnectionState& connection, uint32_t step) const {
    return reinterpret_cast<T*>(connection.slots + uint64_t(step & (connections_.steps - 1)) * connections_.stride);
  }

  // Reduces in pieces of one access each. kSources, kTargets: numbers of sources and targets, compile-time constants so
  // that the pointers stay in registers. A worker has several pieces in flight, also in the last iteration.
  template <class T, class Op, class Piece, uint32_t kSources, uint32_t kTargets>
  static __device__ __forceinline__ void reducePieces(T* const* targets, const T* const* sources, uint32_t pieces,
                                                      const Adjustment<T>& adjust, uint32_t scaled) {
    constexpr uint32_t kUnroll = kSources > 1 ? 6 : 8;
    for (uint32_t first = threadIdx.x; first < pieces; first += kUnroll * workers()) {
      const auto at = [&](uint32_t u) { return first + u * workers(); };
      Piece loaded[kSources][kUnroll]{};
#pragma unroll
      for (uint32_t s = 0; s < kSources; s++) {
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) {
          if (at(u) < pieces) loaded[s][u] = reinterpret_cast<const Piece*>(sources[s])[at(u)];
        }
      }
      if constexpr (Op::kReduces) {
        using Packed = Pack<T, sizeof(Piece)>;
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) {
          const Packed packed = reducePacks<T, Op, sizeof(Piece)>(
              kSources, adjust, scaled, [&](uint32_t s) { return *reinterpret_cast<const Packed*>(&loaded[s][u]); });
          loaded[0][u] = *reinterpret_cast<const Piece*>(&packed);
        }
      }
#pragma unroll
      for (uint32_t t = 0; t < kTargets; t++) {
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) {
          if (at(u) < pieces) reinterpret_cast<Piece*>(targets[t])[at(u)] = loaded[0][u];
        }
      }
    }
  }

  // Reduces pieces of any number of sources and targets, one after the other.
  template <class T, class Op, uint32_t kBytes>
  static __device__ __forceinline__ void reduceAnyPieces(T* const* targets, uint32_t targetCount,
                                                         const T* const* sources, uint32_t sourceCount, uint32_t pieces,
                                                         const Adjustment<T>& adjust, uint32_t scaled) {
    using Packed = Pack<T, kBytes>;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < pieces; i += workers()) {
      const Packed packed = reducePacks<T, Op, kBytes>(
          sourceCount, adjust, scaled, [&](uint32_t s) { return reinterpret_cast<const Packed*>(sources[s])[i]; });
      for (uint32_t t = 0; t < targetCount; t++) reinterpret_cast<Packed*>(targets[t])[i] = packed;
    }
  }

  // Reduces elements [begin, end) at any address.
  template <class T, class Op>
  static __device__ __noinline__ void reduceElements(T* const* targets, uint32_t targetCount, const T* const* sources,
                                                     uint32_t sourceCount, uint32_t begin, uint32_t end,
                                                     const Adjustment<T>& adjust, uint32_t scaled) {
    using Element = Pack<T, sizeof(T)>;
#pragma unroll 1
    for (uint32_t i = begin + threadIdx.x; i < end; i += workers()) {
      const Element element = reducePacks<T, Op, sizeof(T)>(sourceCount, adjust, scaled, [&](uint32_t s) {
        Element loaded;
        memcpy(&loaded, reinterpret_cast<const char*>(sources[s]) + i * sizeof(T), sizeof(T));
        return loaded;
      });
      for (uint32_t t = 0; t < targetCount; t++)
        memcpy(reinterpret_cast<char*>(targets[t]) + i * sizeof(T), &element, sizeof(T));
    }
  }

  // Reduces all whole pieces. Returns the number of elements done.
  template <class T, class Op, class Piece>
  static __device__ __forceinline__ uint32_t reduceBy(T* const* targets, uint32_t targetCount, const T* const* sources,
                                                      uint32_t sourceCount, uint32_t count, const Adjustment<T>& adjust,
                                                      uint32_t scaled) {
    const uint32_t pieces = count / (sizeof(Piece) / sizeof(T));
    const auto counted = [&]<uint32_t kSources, uint32_t kTargets>() {
      reducePieces<T, Op, Piece, kSources, kTargets>(targets, sources, pieces, adjust, scaled);
    };
    // Sixteen elements per piece make long code, which does not pay for every number of sources. Nor does a rare case:
    // an operator other than a sum on memory that is not aligned to a piece.
    constexpr bool kSeldom = sizeof(Piece) < sizeof(uint4) && !std::is_same_v<Op, Sum> && Op::kReduces;
    constexpr bool kLong = (Op::kReduces && sizeof(T) == 1) || kSeldom;
    if (!kLong && sourceCount == 1 && targetCount == 1) {
      counted.template operator()<1, 1>();
    } else if (!kLong && sourceCount == 1 && targetCount == 2) {
      counted.template operator()<1, 2>();
    } else if (!kLong && Op::kReduces && sourceCount == 2 && targetCount == 1) {
      counted.template operator()<2, 1>();
    } else if (!kLong && Op::kReduces && sourceCount == 2 && targetCount == 2) {
      counted.template operator()<2, 2>();
    } else {
      reduceAnyPieces<T, Op, sizeof(Piece)>(targets, targetCount, sources, sourceCount, pieces, adjust, scaled);
    }
    return pieces * (sizeof(Piece) / sizeof(T));
  }

  // Called by all workers. Contains no barrier. scaled: as in reducePacks(). Not inlined, because the code is long.
  template <class T, class Op>
  static __device__ __noinline__ void reduce(T* const* targets, uint32_t targetCount, const T* const* sources,
                                             uint32_t sourceCount, uint32_t count, const Adjustment<T>& adjust,
                                             uint32_t scaled) {
    uintptr_t bits = 0;
    for (uint32_t t = 0; t < targetCount; t++) bits |= reinterpret_cast<uintptr_t>(targets[t]);
    for (uint32_t s = 0; s < sourceCount; s++) bits |= reinterpret_cast<uintptr_t>(sources[s]);
    using Narrow = std::conditional_t<sizeof(T) == 8, uint2, uint32_t>;
    uint32_t done = 0;
    if (bits % 16 == 0) {
      done = reduceBy<T, Op, uint4>(targets, targetCount, sources, sourceCount, count, adjust, scaled);
    } else if (bits % sizeof(Narrow) == 0) {
      done = reduceBy<T, Op, Narrow>(targets, targetCount, sources, sourceCount, count, adjust, scaled);
    }
    if (done < count) reduceElements<T, Op>(targets, targetCount, sources, sourceCount, done, count, adjust, scaled);
  }

  const Launch& launch_;
  Connections& connections_;
  Steps steps_;
  BulkCopies copies_;
  uint32_t moves_ = 0;  // moves that the workers have executed since finish()
  bool announced_ = false;
};

}  // namespace ncclrun::cuda
