// Protocol LL. A thread stores lines of 16 bytes: 4 of data, the flag, 4 of data, the flag. Every 8 bytes arrive whole.
#pragma once
#include "cuda/kernels/ll_steps.cuh"
#include "cuda/kernels/words.cuh"

namespace ncclrun::cuda {

// Steps: LLSteps, or SingleStep for single-step launches, which also takes the block's item and channel.
template <class Ops, template <uint32_t> class Steps = LLSteps>
class LL {
 public:
  static constexpr uint32_t kProtocol = 1;
  using Connections = typename Steps<kProtocol>::Connections;
  static constexpr bool kSingleStep = Steps<kProtocol>::kSingleStep;

  __device__ LL(const Launch& launch, Connections& connections, const auto&... position)
      : launch_(launch), connections_(connections), reduction_(launch), steps_(launch, connections, position...) {}

  __device__ uint32_t slotBytes() const { return steps_.slotBytes() / 16 * 8; }
  __device__ uint32_t slots() const { return steps_.slots(); }
  // Copies a single rank's contribution. Contains no barrier.
  __device__ void copy(const void* source, void* target, size_t bytes) {
    copyWords<Ops>(reduction_, source, target, bytes);
  }
  __device__ void finishSends() {}  // each thread has loaded what it stores
  __device__ void finish() { steps_.finish(); }

  __device__ __forceinline__ void move(const Move& move) {
    if (!steps_.awaitCredits(move)) return;
    SpinWait spin(launch_, connections_);
    const uint32_t bytes = uint32_t(move.count) * launch_.elementBytes;
    steps_.announce(move, bytes);
    const uint32_t whole = wholeWords(move.own, move.target, bytes);
    const bool reduces = isReduced(move, reduction_);
    const Contributions contributions(move);
    for (uint32_t i = threadIdx.x; i * 8 < bytes; i += blockDim.x) {
      uint64_t word = 0;
      bool isComplete = true;  // not after an abort: then nothing of it is sent
      if (move.own != nullptr) word = i < whole ? loadWord(move.own, i) : loadPart(move.own, i, bytes);
      if (reduces) {
        word = reduced(move, contributions, i, word, spin, isComplete);
      } else if (move.receiveCount > 0) {
        uint64_t words[1];
        isComplete = receive(contributions, 0, i, words, spin);
        word = words[0];
      }
      if (!isComplete) break;
#pragma unroll 1  // unrolled code would cost more than it saves: the peer is far away
      for (uint32_t k = move.to; k < move.to + move.sendCount; k++)
        storeLLLine(steps_.template sendSlot<uint4>(k) + i, word, steps_.sendFlag(k));
      if (move.target == nullptr) continue;
      if (i < whole) storeWord(move.target, i, word);
      if (i >= whole) storePart(move.target, i, bytes, word);
    }
    for (uint32_t k = move.to; k < move.to + move.sendCount; k++) {
      if (!steps_.isRenewalDue(k)) continue;
      for (uint32_t i = (bytes + 7) / 8 + threadIdx.x; i < steps_.slotBytes() / 16; i += blockDim.x)
        storeLLLine(steps_.template sendSlot<uint4>(k) + i, 0, steps_.sendFlag(k));
    }
    steps_.post(move, bytes);
  }

 private:
  // Receives line i of contributions [first, +kAtOnce), polling all of them together. Returns false after an abort.
  template <uint32_t kAtOnce>
  __device__ __forceinline__ bool receive(const Contributions& contributions, uint32_t first, uint32_t i,
                                          uint64_t (&words)[kAtOnce], SpinWait& spin) {
    bool all;
    do {
      all = true;
      uint4 lines[kAtOnce];
#pragma unroll
      for (uint32_t k = 0; k < kAtOnce; k++) {
        if (!contributions.isReceived(first + k)) continue;
        lines[k] = loadLLLine(steps_.template receiveSlot<const uint4>(contributions.connection(first + k)) + i);
      }
#pragma unroll
      for (uint32_t k = 0; k < kAtOnce; k++) {
        if (!contributions.isReceived(first + k)) continue;
        const uint32_t flag = steps_.receiveFlag(contributions.connection(first + k));
        all = all && lines[k].y == flag && lines[k].w == flag;
        words[k] = uint64_t(lines[k].z) << 32 | lines[k].x;
      }
    } while (!all && !spin.gaveUp());
    return all;
  }

  __device__ __forceinline__ uint64_t reduced(const Move& move, const Contributions& contributions, uint32_t i,
                                              uint64_t mine, SpinWait& spin, bool& isComplete) {
    if constexpr (WordReduction<Ops>::kReduces) {
      constexpr uint32_t kAtOnce = 4;
      typename WordReduction<Ops>::Accumulator accumulator;
      if (move.own != nullptr && reduction_.scales()) mine = reduction_.scaled(mine);
#pragma unroll 1
      for (uint32_t first = 0; first < contributions.count(); first += kAtOnce) {
        uint64_t words[kAtOnce]{};
        isComplete = receive(contributions, first, i, words, spin) && isComplete;
#pragma unroll
        for (uint32_t k = 0; k < kAtOnce; k++) {
          if (!contributions.has(first + k)) break;
          accumulator.take(reduction_, contributions.isOwn(first + k) ? mine : words[k], k == 0 && first == 0);
        }
      }
      return accumulator.result(reduction_, isResult(move));
    } else {
      return mine;
    }
  }

  const Launch& launch_;
  Connections& connections_;
  const WordReduction<Ops> reduction_;
  Steps<kProtocol> steps_;
};

}  // namespace ncclrun::cuda
