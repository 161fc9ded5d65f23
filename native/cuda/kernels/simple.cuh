// Protocol Simple: a step is a slot full of data, handed over by a counter beside the slots.
//
// Four kinds of warps of a block go through the moves of its algorithm: one waits for slots, one hands them on, the
// others, the workers, fold. So what a move waits for is looked at while the one before is folded, and the workers do
// not wait until what they have written is visible to the peer. Moves that only send are the fourth kind's, which is
// ahead of the others as far as there are slots.
#pragma once
#include "cuda/kernels/arithmetic.cuh"
#include "cuda/kernels/bulk_sends.cuh"
#include "cuda/kernels/ends.cuh"
#include "cuda/kernels/kinds.cuh"
#include "cuda/kernels/move.cuh"
#include "cuda/kernels/pulls.cuh"
#include "cuda/kernels/steps.cuh"

namespace ncclrun::cuda {

template <class AllKinds>
class Simple {
 public:
  static constexpr uint32_t kProtocol = 0;
  using Ends = cuda::Ends;
  static constexpr bool kOneTurn = false;

  __device__ Simple(const Launch& launch, Ends& ends) : launch_(launch), ends_(ends), steps_(ends) {
    if (isAsker()) BulkSends::begin();
  }

  __device__ uint32_t slotBytes() const { return ends_.stepBytes; }
  __device__ uint32_t slots() const { return ends_.steps; }

  __device__ void move(const Move& move) {
    if (BulkSends::takes(launch_, move)) {
      if (isAsker()) BulkSends::send(launch_, ends_, copies_, move, steps_.send(move.to));
    } else if (!isBulkWarp()) {
      carryOut(move, moves_++);
    }
    if (!steps_.advance(move)) finish();
  }
  // A single rank's contribution; no barrier inside.
  __device__ __noinline__ void copy(const void* source, void* target, size_t bytes) {
    if (!isWorker()) return;
    AllKinds::choose(launch_.kind, [&]<class T, class Op>() { copyAs<T, Op>(source, target, bytes / sizeof(T)); });
  }

  // What each of the block's warps does.
  __device__ __noinline__ void pull(const Work& w) {
    const Pulls pulls(launch_, w);
    if (isBulkWarp()) {
      if (pulls.pieces() > 0) loadPulled(pulls);
    } else if (isWorker()) {
      if (pulls.pieces() > 0) meet(kReady, 0, workers() + 32);
      AllKinds::choose(launch_.kind, [&]<class T, class Op>() { foldPulled<T, Op>(pulls); });
      if (pulls.pieces() > 0) tell(kDone, 0, workers() + 32);
    }
  }

  __device__ void sent() { finish(); }
  __device__ void finish() {
    if (isBulkWarp()) {
      if (isAsker()) BulkSends::end(launch_, ends_, copies_);
      __syncwarp();
    } else if (moves_ > 0 && threadIdx.x / 32 != workers() / 32 + 1) {
      meet(kReady, moves_, workers() + 64);  // what the hand-on warp has announced
    }
    moves_ = 0;
    announced_ = false;
    steps_.write();
  }

 private:
  // Barriers of the block, two of each kind in turn.
  static constexpr uint32_t kReady = 1;  // all but the last kind: what the move waits for is there
  static constexpr uint32_t kDone = 3;   // workers and the warp that hands on: it is folded

  static __device__ __forceinline__ void meet(uint32_t barrier, uint32_t number, uint32_t threads) {
    meetAt(barrier + number % 2, threads);
  }
  static __device__ __forceinline__ void tell(uint32_t barrier, uint32_t number, uint32_t threads) {
    tellAt(barrier + number % 2, threads);
  }
  static __device__ __forceinline__ uint32_t workers() { return blockDim.x - (kHasBulkCopies ? 96 : 64); }
  static __device__ __forceinline__ bool isWorker() { return threadIdx.x < workers(); }
  static __device__ __forceinline__ bool isBulkWarp() { return threadIdx.x >= workers() + 64; }
  static __device__ __forceinline__ bool isAsker() { return kHasBulkCopies && threadIdx.x == workers() + 64; }

  // By all but the last kind of warps. `number`: of the moves since finish() that they have carried out.
  __device__ __forceinline__ void carryOut(const Move& move, uint32_t number) {
    if (isWorker()) {
      meet(kReady, number, workers() + 64);
      if (!ends_.aborted) AllKinds::choose(launch_.kind, [&]<class T, class Op>() { moveAs<T, Op>(move); });
      tell(kDone, number, workers() + 32);
    } else if (threadIdx.x / 32 == workers() / 32) {
      awaitAll(move);
      meet(kReady, number, workers() + 64);
    } else {
      // Workers may begin the next move before this one is handed on, but not the one after.
      if (!announced_) tell(kReady, number, workers() + 64);
      tell(kReady, number + 1, workers() + 64);
      announced_ = true;
      meet(kDone, number, workers() + 32);
      handOn(move);
    }
  }

  template <class T, class Op>
  __device__ __noinline__ void moveAs(const Move& move) {
    const T* sources[kMaxPeers + 1];
    T* targets[kMaxPeers + 1];
    uint32_t sourceCount = 0, targetCount = 0;
    for (uint32_t i = 0; i < move.froms; i++) {
      if (move.own != nullptr && sourceCount == move.place) sources[sourceCount++] = static_cast<const T*>(move.own);
      sources[sourceCount++] = slotOf<T>(ends_.receives[move.from + i], steps_.receive(move.from + i));
    }
    if (move.own != nullptr && sourceCount == move.froms) sources[sourceCount++] = static_cast<const T*>(move.own);
    for (uint32_t i = 0; i < move.tos; i++)
      targets[targetCount++] = slotOf<T>(ends_.sends[move.to + i], steps_.send(move.to + i));
    if (move.target != nullptr) targets[targetCount++] = static_cast<T*>(move.target);
    const uint32_t scaled = move.own != nullptr ? move.place : kNoSource;
    fold<T, Op>(targets, targetCount, sources, sourceCount, uint32_t(move.count), adjustmentFor<T, Op>(launch_, move),
                scaled);
  }

  // By the warp that asks for bulk copies, of which a lane asks for each rank's.
  __device__ void loadPulled(const Pulls& pulls) {
    if (isAsker()) pulls.beginLoads(workers());
    __syncwarp();
    tell(kReady, 0, workers() + 32);
    const uint32_t lane = threadIdx.x % 32;
    if (lane < pulls.ranks()) pulls.loadAll(copies_, lane);
    __syncwarp();
    meet(kDone, 0, workers() + 32);
    if (isAsker()) {
      pulls.endLoads();
      BulkSends::begin();  // what it keeps lay in the same memory
    }
    __syncwarp();
  }
  // By the workers.
  template <class T, class Op>
  __device__ __noinline__ void foldPulled(const Pulls pulls) {
    constexpr size_t kMost = size_t(1) << 28;  // bytes: fold counts elements in 32 bits
    const Adjustment<T> adjust = adjustmentOf<T, Op>(launch_);
    pulls.foldLoaded<T, Op>(copies_, adjust, workers());
    for (size_t at = pulls.loadedBytes(), bytes; at < pulls.bytes(); at += bytes) {
      bytes = lesser(kMost, pulls.bytes() - at);
      const T* sources[kMaxPeers];
      for (uint32_t rank = 0; rank < pulls.ranks(); rank++)
        sources[rank] = reinterpret_cast<const T*>(pulls.source(rank, at));
      T* const targets[1] = {reinterpret_cast<T*>(pulls.target(at))};
      fold<T, Op>(targets, 1, sources, pulls.ranks(), uint32_t(bytes / sizeof(T)), adjust, kAllSources);
    }
  }

  template <class T, class Op>
  __device__ __noinline__ void copyAs(const void* source, void* target, size_t count) {
    constexpr size_t kMost = size_t(1) << 28;  // elements, which fold counts in 32 bits
    for (size_t begin = 0; begin < count; begin += kMost) {
      const T* sources[1] = {static_cast<const T*>(source) + begin};
      T* targets[1] = {static_cast<T*>(target) + begin};
      const auto part = uint32_t(lesser(kMost, count - begin));
      fold<T, Op>(targets, 1, sources, 1, part, adjustmentOf<T, Op>(launch_), 0);
    }
  }

  // A lane for each slot.
  __device__ void awaitAll(const Move& move) {
    Patience patience(launch_, ends_);
    const uint32_t lane = threadIdx.x % 32;
    if (lane < move.froms) {
      const End& end = ends_.receives[move.from + lane];
      const uint32_t wanted = steps_.receive(move.from + lane) + 1;
      while (!reached(loadVolatile(end.tail), wanted) && !patience.over()) continue;
      loadAcquire(end.tail);
    } else if (lane >= kMaxPeers && lane - kMaxPeers < move.tos) {
      const uint32_t i = move.to + lane - kMaxPeers;
      awaitCredit(ends_.sends[i], steps_.send(i), ends_.steps, patience);
    }
    __syncwarp();
  }
  // The same lanes; all workers' accesses happen before. After an abort nothing was folded.
  __device__ void handOn(const Move& move) {
    if (ends_.aborted) return;
    const uint32_t lane = threadIdx.x % 32;
    const uint64_t bytes = move.count * launch_.elementBytes;
    if (lane < move.froms) {
      End& end = ends_.receives[move.from + lane];
      end.bytes += bytes;
      storeCredit(end.head, steps_.receive(move.from + lane) + 1);
    }
    __syncwarp();
    if (lane >= kMaxPeers && lane - kMaxPeers < move.tos) {
      Patience patience(launch_, ends_);
      const uint32_t i = move.to + lane - kMaxPeers;
      handOnStep(ends_.sends[i], steps_.send(i), bytes, patience);
    }
    __syncwarp();
  }

  template <class T>
  __device__ T* slotOf(const End& end, uint32_t step) const {
    return reinterpret_cast<T*>(end.slots + uint64_t(step & (ends_.steps - 1)) * ends_.stepBytes);
  }

  // In pieces that one access takes. kSources, kTargets: how many there are, known when compiled, so that the pointers
  // stay in registers. A worker has several pieces under way at once, in the last round too.
  template <class T, class Op, class Piece, uint32_t kSources, uint32_t kTargets>
  static __device__ __forceinline__ void foldPieces(T* const* targets, const T* const* sources, uint32_t pieces,
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
      if constexpr (Op::kFolds) {
        using Packed = Pack<T, sizeof(Piece)>;
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) {
          const Packed packed = foldPacks<T, Op, sizeof(Piece)>(
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

  // The same of any number of them, one piece after the other.
  template <class T, class Op, uint32_t kBytes>
  static __device__ __forceinline__ void foldAnyPieces(T* const* targets, uint32_t targetCount, const T* const* sources,
                                                       uint32_t sourceCount, uint32_t pieces,
                                                       const Adjustment<T>& adjust, uint32_t scaled) {
    using Packed = Pack<T, kBytes>;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < pieces; i += workers()) {
      const Packed packed = foldPacks<T, Op, kBytes>(
          sourceCount, adjust, scaled, [&](uint32_t s) { return reinterpret_cast<const Packed*>(sources[s])[i]; });
      for (uint32_t t = 0; t < targetCount; t++) reinterpret_cast<Packed*>(targets[t])[i] = packed;
    }
  }

  // Elements [begin, end), at any address.
  template <class T, class Op>
  static __device__ __noinline__ void foldElements(T* const* targets, uint32_t targetCount, const T* const* sources,
                                                   uint32_t sourceCount, uint32_t begin, uint32_t end,
                                                   const Adjustment<T>& adjust, uint32_t scaled) {
    using Element = Pack<T, sizeof(T)>;
#pragma unroll 1
    for (uint32_t i = begin + threadIdx.x; i < end; i += workers()) {
      const Element element = foldPacks<T, Op, sizeof(T)>(sourceCount, adjust, scaled, [&](uint32_t s) {
        Element loaded;
        memcpy(&loaded, reinterpret_cast<const char*>(sources[s]) + i * sizeof(T), sizeof(T));
        return loaded;
      });
      for (uint32_t t = 0; t < targetCount; t++)
        memcpy(reinterpret_cast<char*>(targets[t]) + i * sizeof(T), &element, sizeof(T));
    }
  }

  // What all of it takes in whole pieces. Counts of elements.
  template <class T, class Op, class Piece>
  static __device__ __forceinline__ uint32_t foldBy(T* const* targets, uint32_t targetCount, const T* const* sources,
                                                    uint32_t sourceCount, uint32_t count, const Adjustment<T>& adjust,
                                                    uint32_t scaled) {
    const uint32_t pieces = count / (sizeof(Piece) / sizeof(T));
    const auto counted = [&]<uint32_t kSources, uint32_t kTargets>() {
      foldPieces<T, Op, Piece, kSources, kTargets>(targets, sources, pieces, adjust, scaled);
    };
    // Sixteen elements to a piece make long code, which is not worth having for every number of sources; nor is what
    // hardly occurs: another operator than a sum on memory that is not aligned to a piece.
    constexpr bool kSeldom = sizeof(Piece) < sizeof(uint4) && !std::is_same_v<Op, Sum> && Op::kFolds;
    constexpr bool kLong = (Op::kFolds && sizeof(T) == 1) || kSeldom;
    if (!kLong && sourceCount == 1 && targetCount == 1) {
      counted.template operator()<1, 1>();
    } else if (!kLong && sourceCount == 1 && targetCount == 2) {
      counted.template operator()<1, 2>();
    } else if (!kLong && Op::kFolds && sourceCount == 2 && targetCount == 1) {
      counted.template operator()<2, 1>();
    } else if (!kLong && Op::kFolds && sourceCount == 2 && targetCount == 2) {
      counted.template operator()<2, 2>();
    } else {
      foldAnyPieces<T, Op, sizeof(Piece)>(targets, targetCount, sources, sourceCount, pieces, adjust, scaled);
    }
    return pieces * (sizeof(Piece) / sizeof(T));
  }

  // By all workers. No barrier inside. scaled: as foldPacks has it. Long code, so once for all who call it.
  template <class T, class Op>
  static __device__ __noinline__ void fold(T* const* targets, uint32_t targetCount, const T* const* sources,
                                           uint32_t sourceCount, uint32_t count, const Adjustment<T>& adjust,
                                           uint32_t scaled) {
    uintptr_t bits = 0;
    for (uint32_t t = 0; t < targetCount; t++) bits |= reinterpret_cast<uintptr_t>(targets[t]);
    for (uint32_t s = 0; s < sourceCount; s++) bits |= reinterpret_cast<uintptr_t>(sources[s]);
    using Narrow = std::conditional_t<sizeof(T) == 8, uint2, uint32_t>;
    uint32_t done = 0;
    if (bits % 16 == 0) {
      done = foldBy<T, Op, uint4>(targets, targetCount, sources, sourceCount, count, adjust, scaled);
    } else if (bits % sizeof(Narrow) == 0) {
      done = foldBy<T, Op, Narrow>(targets, targetCount, sources, sourceCount, count, adjust, scaled);
    }
    if (done < count) foldElements<T, Op>(targets, targetCount, sources, sourceCount, done, count, adjust, scaled);
  }

  const Launch& launch_;
  Ends& ends_;
  Steps steps_;
  BulkCopies copies_;
  uint32_t moves_ = 0;  // carried out by workers since finish()
  bool announced_ = false;
};

}  // namespace ncclrun::cuda
