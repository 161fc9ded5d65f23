// Protocol Simple: a step is a slot full of data, handed over by a counter beside the slots. The block works on one
// step at a time.
#pragma once
#include "device/cuda/arithmetic.cuh"
#include "device/cuda/ends.cuh"
#include "device/cuda/kinds.cuh"
#include "device/cuda/move.cuh"

namespace ncclrun::cuda {

template <class AllKinds>
class Simple {
 public:
  static constexpr uint32_t kProtocol = 0;

  __device__ Simple(const Launch& launch, Ends& ends) : launch_(launch), ends_(ends) {}

  __device__ uint32_t slotBytes() const { return launch_.stepBytes; }

  __device__ void move(const Move& move) {
    AllKinds::choose(launch_.kind, [&]<class T, class Op>() { moveAs<T, Op>(move); });
  }
  // A single rank's contribution; no barrier inside.
  __device__ void copy(const void* source, void* target, size_t bytes) {
    AllKinds::choose(launch_.kind, [&]<class T, class Op>() { copyAs<T, Op>(source, target, bytes / sizeof(T)); });
  }

  __device__ void finish() {}

 private:
  static constexpr uint32_t kNone = ~0u;

  template <class T, class Op>
  __device__ __noinline__ void moveAs(const Move& move) {
    awaitAll(move);
    __syncthreads();
    const T* sources[kMaxPeers + 1];
    T* targets[kMaxPeers + 1];
    uint32_t sourceCount = 0, targetCount = 0;
    for (uint32_t i = 0; i < move.froms; i++) {
      if (move.own != nullptr && sourceCount == move.place) sources[sourceCount++] = static_cast<const T*>(move.own);
      sources[sourceCount++] = slotOf<T>(ends_.receives[move.from + i]);
    }
    if (move.own != nullptr && sourceCount == move.froms) sources[sourceCount++] = static_cast<const T*>(move.own);
    for (uint32_t i = 0; i < move.tos; i++) targets[targetCount++] = slotOf<T>(ends_.sends[move.to + i]);
    if (move.target != nullptr) targets[targetCount++] = static_cast<T*>(move.target);
    if (!move.empty && !ends_.aborted) {
      const uint32_t scaled = move.own != nullptr ? move.place : kNone;
      fold<T, Op>(targets, targetCount, sources, sourceCount, move.count, adjustmentFor<T, Op>(launch_, move), scaled);
    }
    __syncthreads();
    handOn(move, sizeof(T));
  }

  template <class T, class Op>
  __device__ __noinline__ void copyAs(const void* source, void* target, size_t count) {
    const T* sources[1] = {static_cast<const T*>(source)};
    T* targets[1] = {static_cast<T*>(target)};
    fold<T, Op>(targets, 1, sources, 1, count, adjustmentOf<T, Op>(launch_), 0);
  }

  // Lanes of the first warp wait, each for one slot.
  __device__ void awaitAll(const Move& move) {
    if (threadIdx.x >= 32) return;
    Patience patience(launch_, ends_);
    const uint32_t lane = threadIdx.x;
    if (lane < move.froms) {
      End& end = ends_.receives[move.from + lane];
      while (!reached(loadAcquire(end.tail), end.step + 1) && !patience.over()) continue;
    } else if (lane >= kMaxPeers && lane - kMaxPeers < move.tos) {
      awaitCredit(ends_.sends[move.to + lane - kMaxPeers], launch_.steps, patience);
    }
  }
  // The same lanes; all threads' accesses happen before.
  __device__ void handOn(const Move& move, size_t elementBytes) {
    if (threadIdx.x >= 32) return;
    const uint32_t lane = threadIdx.x;
    if (lane < move.froms) {
      End& end = ends_.receives[move.from + lane];
      end.bytes += move.count * elementBytes;
      storeRelease(end.head, ++end.step);
    } else if (lane >= kMaxPeers && lane - kMaxPeers < move.tos) {
      End& end = ends_.sends[move.to + lane - kMaxPeers];
      end.bytes += move.count * elementBytes;
      storeRelease(end.tail, ++end.step);
    }
    __syncwarp();
  }

  template <class T>
  __device__ T* slotOf(const End& end) const {
    return reinterpret_cast<T*>(end.slots + uint64_t(end.step % launch_.steps) * launch_.stepBytes);
  }

  // aligned: to the pack's size.
  template <class Packed>
  static __device__ __forceinline__ Packed loadPack(const Packed* from, bool aligned) {
    if (aligned || sizeof(Packed) == 1) return *from;
    Packed pack;
    for (uint32_t b = 0; b < sizeof(Packed); b++)
      reinterpret_cast<char*>(&pack)[b] = reinterpret_cast<const char*>(from)[b];
    return pack;
  }
  template <class Packed>
  static __device__ __forceinline__ void storePack(Packed* to, const Packed& pack, bool aligned) {
    if (aligned || sizeof(Packed) == 1) {
      *to = pack;
      return;
    }
    for (uint32_t b = 0; b < sizeof(Packed); b++)
      reinterpret_cast<char*>(to)[b] = reinterpret_cast<const char*>(&pack)[b];
  }

  // kSources, kTargets: how many there are, known when compiled, so that the pointers stay in registers; 0: any number.
  template <class T, class Op, uint32_t kBytes, uint32_t kSources, uint32_t kTargets>
  static __device__ __forceinline__ void foldPacks(T* const* targets, uint32_t anyTargets, const T* const* sources,
                                                   uint32_t anySources, size_t begin, size_t packs,
                                                   const Adjustment<T>& adjust, uint32_t scaled, bool aligned) {
    using Packed = Pack<T, kBytes>;
    constexpr uint32_t kUnroll = kBytes < 16 ? 1 : kSources > 1 ? 4 : 8;
    const uint32_t sourceCount = kSources != 0 ? kSources : anySources;
    const uint32_t targetCount = kTargets != 0 ? kTargets : anyTargets;
    const auto load = [&](uint32_t s, size_t i) {
      return loadPack(reinterpret_cast<const Packed*>(sources[s] + begin) + i, aligned);
    };
    size_t i = threadIdx.x;
    if constexpr (kSources != 0 && kTargets != 0 && kUnroll > 1) {
      for (; i + (kUnroll - 1) * blockDim.x < packs; i += kUnroll * blockDim.x) {
        Packed loaded[kSources][kUnroll];
#pragma unroll
        for (uint32_t s = 0; s < kSources; s++) {
#pragma unroll
          for (uint32_t u = 0; u < kUnroll; u++) loaded[s][u] = load(s, i + u * blockDim.x);
        }
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) {
          Folding<T, Op, kBytes> folding(adjust);
          folding.begin(loaded[0][u], scaled == 0);
#pragma unroll
          for (uint32_t s = 1; s < kSources; s++) folding.add(loaded[s][u], scaled == s);
          loaded[0][u] = folding.result();
        }
#pragma unroll
        for (uint32_t t = 0; t < kTargets; t++) {
#pragma unroll
          for (uint32_t u = 0; u < kUnroll; u++)
            reinterpret_cast<Packed*>(targets[t] + begin)[i + u * blockDim.x] = loaded[0][u];
        }
      }
    }
#pragma unroll 1
    for (; i < packs; i += blockDim.x) {
      Folding<T, Op, kBytes> folding(adjust);
      folding.begin(load(0, i), scaled == 0);
#pragma unroll 1
      for (uint32_t s = 1; s < sourceCount; s++) folding.add(load(s, i), scaled == s);
      const Packed value = folding.result();
      for (uint32_t t = 0; t < targetCount; t++)
        storePack(reinterpret_cast<Packed*>(targets[t] + begin) + i, value, aligned);
    }
  }

  template <class T, class Op, uint32_t kSources, uint32_t kTargets>
  static __device__ __forceinline__ void foldCounted(T* const* targets, uint32_t targetCount, const T* const* sources,
                                                     uint32_t sourceCount, size_t count, const Adjustment<T>& adjust,
                                                     uint32_t scaled) {
    uintptr_t bits = 0;
    for (uint32_t t = 0; t < (kTargets != 0 ? kTargets : targetCount); t++)
      bits |= reinterpret_cast<uintptr_t>(targets[t]);
    for (uint32_t s = 0; s < (kSources != 0 ? kSources : sourceCount); s++)
      bits |= reinterpret_cast<uintptr_t>(sources[s]);
    size_t done = 0;
    if (bits % 16 == 0) {
      const size_t packs = count * sizeof(T) / 16;
      foldPacks<T, Op, 16, kSources, kTargets>(targets, targetCount, sources, sourceCount, 0, packs, adjust, scaled,
                                               true);
      done = packs * 16 / sizeof(T);
    }
    foldPacks<T, Op, sizeof(T), kSources, kTargets>(targets, targetCount, sources, sourceCount, done, count - done,
                                                    adjust, scaled, bits % sizeof(T) == 0);
  }

  // By all threads of the block. No barrier inside. scaled: number of the source to be multiplied.
  template <class T, class Op>
  static __device__ __forceinline__ void fold(T* const* targets, uint32_t targetCount, const T* const* sources,
                                              uint32_t sourceCount, size_t count, const Adjustment<T>& adjust,
                                              uint32_t scaled) {
    const auto counted = [&]<uint32_t kSources, uint32_t kTargets>() {
      foldCounted<T, Op, kSources, kTargets>(targets, targetCount, sources, sourceCount, count, adjust, scaled);
    };
    // Sixteen elements to a load make long code, which is not worth having for every number of sources.
    constexpr bool kLong = Op::kFolds && sizeof(T) == 1;
    if constexpr (kLong) {
      counted.template operator()<0, 0>();
    } else if constexpr (!Op::kFolds) {
      if (targetCount == 1) return counted.template operator()<1, 1>();
      if (targetCount == 2) return counted.template operator()<1, 2>();
      return counted.template operator()<1, 0>();
    } else {
      if (sourceCount == 1 && targetCount == 1) return counted.template operator()<1, 1>();
      if (sourceCount == 1 && targetCount == 2) return counted.template operator()<1, 2>();
      if (sourceCount == 2 && targetCount == 1) return counted.template operator()<2, 1>();
      if (sourceCount == 2 && targetCount == 2) return counted.template operator()<2, 2>();
      counted.template operator()<0, 0>();
    }
  }

  const Launch& launch_;
  Ends& ends_;
};

}  // namespace ncclrun::cuda
