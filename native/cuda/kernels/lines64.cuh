// Protocol LL. A line of 16 bytes is a thread's: 4 of data, the flag, 4 of data, the flag. Every 8 bytes arrive whole.
#pragma once
#include "cuda/kernels/line_steps.cuh"
#include "cuda/kernels/words.cuh"

namespace ncclrun::cuda {

// Steps: LineSteps, or OneTurn for launches of one turn, which is told the block's item and channel too.
template <class AllKinds, template <uint32_t> class Steps = LineSteps>
class Lines64 {
 public:
  static constexpr uint32_t kProtocol = 1;
  using Ends = typename Steps<kProtocol>::Ends;
  static constexpr bool kOneTurn = Steps<kProtocol>::kOneTurn;

  __device__ Lines64(const Launch& launch, Ends& ends, const auto&... place)
      : launch_(launch), ends_(ends), fold_(launch), steps_(launch, ends, place...) {}

  __device__ uint32_t slotBytes() const { return steps_.slotBytes() / 16 * 8; }
  __device__ uint32_t slots() const { return steps_.slots(); }
  // A single rank's contribution; no barrier inside.
  __device__ void copy(const void* source, void* target, size_t bytes) {
    copyWords<AllKinds>(fold_, source, target, bytes);
  }
  __device__ void sent() {}  // each thread has loaded what it stores
  __device__ void finish() { steps_.finish(); }

  __device__ __forceinline__ void move(const Move& move) {
    steps_.awaitCredits(move);
    Patience patience(launch_, ends_);
    const uint32_t bytes = uint32_t(move.count) * launch_.elementBytes;
    const uint32_t whole = wholeWords(move.own, move.target, bytes);
    const bool folds = isFolded(move, fold_);
    const Contributions contributions(move);
    for (uint32_t i = threadIdx.x; i * 8 < bytes; i += blockDim.x) {
      uint64_t word = 0;
      if (move.own != nullptr) word = i < whole ? loadWord(move.own, i) : loadPart(move.own, i, bytes);
      if (folds) {
        word = folded(move, contributions, i, word, patience);
      } else if (move.froms > 0) {
        uint64_t words[1];
        receive(contributions, 0, i, words, patience);
        word = words[0];
      }
#pragma unroll 1  // long code takes longer than it saves: a peer is far away
      for (uint32_t k = move.to; k < move.to + move.tos; k++)
        storeLine64(steps_.template sendSlot<uint4>(k) + i, word, steps_.sendFlag(k));
      if (move.target == nullptr) continue;
      if (i < whole) storeWord(move.target, i, word);
      if (i >= whole) storePart(move.target, i, bytes, word);
    }
    for (uint32_t k = move.to; k < move.to + move.tos; k++) {
      if (!steps_.isRenewal(k)) continue;
      for (uint32_t i = (bytes + 7) / 8 + threadIdx.x; i < steps_.slotBytes() / 16; i += blockDim.x)
        storeLine64(steps_.template sendSlot<uint4>(k) + i, 0, steps_.sendFlag(k));
    }
    steps_.handOn(move, bytes);
  }

 private:
  // Lines i of contributions [first, +kTogether) that are received, looked at together.
  template <uint32_t kTogether>
  __device__ __forceinline__ void receive(const Contributions& contributions, uint32_t first, uint32_t i,
                                          uint64_t (&words)[kTogether], Patience& patience) {
    bool all;
    do {
      all = true;
      uint4 lines[kTogether];
#pragma unroll
      for (uint32_t k = 0; k < kTogether; k++) {
        if (!contributions.isReceived(first + k)) continue;
        lines[k] = loadLine64(steps_.template receiveSlot<const uint4>(contributions.connection(first + k)) + i);
      }
#pragma unroll
      for (uint32_t k = 0; k < kTogether; k++) {
        if (!contributions.isReceived(first + k)) continue;
        const uint32_t flag = steps_.receiveFlag(contributions.connection(first + k));
        all = all && lines[k].y == flag && lines[k].w == flag;
        words[k] = uint64_t(lines[k].z) << 32 | lines[k].x;
      }
    } while (!all && !patience.over());
  }

  __device__ __forceinline__ uint64_t folded(const Move& move, const Contributions& contributions, uint32_t i,
                                             uint64_t mine, Patience& patience) {
    if constexpr (WordFold<AllKinds>::kFolds) {
      constexpr uint32_t kTogether = 4;
      typename WordFold<AllKinds>::Folding folding;
      if (move.own != nullptr && fold_.scales()) mine = fold_.scaled(mine);
#pragma unroll 1
      for (uint32_t first = 0; first < contributions.count(); first += kTogether) {
        uint64_t words[kTogether]{};
        receive(contributions, first, i, words, patience);
#pragma unroll
        for (uint32_t k = 0; k < kTogether; k++) {
          if (!contributions.has(first + k)) break;
          folding.take(fold_, contributions.isOwn(first + k) ? mine : words[k], k == 0 && first == 0);
        }
      }
      return folding.result(fold_, isResult(move));
    } else {
      return mine;
    }
  }

  const Launch& launch_;
  Ends& ends_;
  const WordFold<AllKinds> fold_;
  Steps<kProtocol> steps_;
};

}  // namespace ncclrun::cuda
