// Protocol LL128. A line of 128 bytes is eight lanes': 120 of data, then the flag. Only where 128 bytes arrive whole.
#pragma once
#include "cuda/kernels/line_steps.cuh"
#include "cuda/kernels/words.cuh"

namespace ncclrun::cuda {

// Steps: LineSteps, or OneTurn for launches of one turn, which is told the block's item and channel too.
template <class AllKinds, template <uint32_t> class Steps = LineSteps>
class Lines128 {
 public:
  static constexpr uint32_t kProtocol = 2;
  using Ends = typename Steps<kProtocol>::Ends;
  static constexpr bool kOneTurn = Steps<kProtocol>::kOneTurn;

  __device__ Lines128(const Launch& launch, Ends& ends, const auto&... place)
      : launch_(launch), ends_(ends), fold_(launch), steps_(launch, ends, place...) {}

  __device__ uint32_t slotBytes() const { return steps_.slotBytes() / 128 * kWords * 8; }
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
    const Span span = spanOf(bytes, wholeWords(move.own, move.target, bytes));
    if (!isFolded(move, fold_)) {
      forEachGroup<kOneTurn ? 2 : 4>(span, [&]<uint32_t kUnroll, bool kWhole>(uint32_t group) {
        pass<kUnroll, kWhole>(move, span, group, patience);
      });
    } else if constexpr (WordFold<AllKinds>::kFolds) {
      // By sums at full length; what other operators take in one turn is short.
      constexpr bool kShort = kOneTurn && WordFold<AllKinds>::kChooses;
      if (move.froms == 1) {
        forEachGroup<kShort ? 1 : 4>(span, [&]<uint32_t kUnroll, bool kWhole>(uint32_t group) {
          fold<2, kUnroll, kWhole>(move, span, group, patience);
        });
      } else {
        forEachGroup<kShort ? 1 : 2>(span, [&]<uint32_t kUnroll, bool kWhole>(uint32_t group) {
          fold<4, kUnroll, kWhole>(move, span, group, patience);
        });
      }
    }
    renew(move, span.lines);
    steps_.handOn(move, bytes);
  }

  // The move only sends; beside it, unless `target` is null, as much is copied: with what a link takes its time for,
  // loads and stores of the GPU's own memory take none.
  __device__ __forceinline__ void sendAndCopy(const Move& move, const void* source, void* target) {
    steps_.awaitCredits(move);
    const uint32_t bytes = uint32_t(move.count) * launch_.elementBytes;
    const uint32_t sends = wholeWords(move.own, target, bytes);
    const Span span = spanOf(bytes, target == nullptr || sends == 0 ? sends : wholeWords(source, target, bytes));
    forEachGroup<kOneTurn ? 2 : 4>(span, [&]<uint32_t kUnroll, bool kWhole>(uint32_t group) {
      Pair sent[kUnroll], own[kUnroll];
      loadOwn<kUnroll, kWhole>(move.own, span, group, sent);
      if (target != nullptr) loadOwn<kUnroll, kWhole>(source, span, group, own);
      put<kUnroll, kWhole>(move, span, group, sent);
      if (target != nullptr) keep<kUnroll, kWhole>(target, span, group, own);
    });
    renew(move, span.lines);
    steps_.handOn(move, bytes);
  }

 private:
  static constexpr uint32_t kWords = 15;  // of a line
  static constexpr uint32_t kAll = ~0u;

  struct Span {
    uint32_t bytes;
    uint32_t whole;  // words that one access each can take
    uint32_t lines;
  };
  static __device__ __forceinline__ Span spanOf(uint32_t bytes, uint32_t whole) {
    return {bytes, whole, (bytes + kWords * 8 - 1) / (kWords * 8)};
  }
  // Two words of a line, of which the last lane has one and the flag.
  struct Pair {
    uint64_t a, b;
  };
  static __device__ __forceinline__ bool hasFlag() { return threadIdx.x % 8 == 7; }
  static __device__ __forceinline__ uint32_t lineOf(uint32_t group) { return group * 4 + threadIdx.x % 32 / 8; }
  static __device__ __forceinline__ uint32_t wordOf(uint32_t group) {
    return lineOf(group) * kWords + threadIdx.x % 8 * 2;
  }
  static __device__ __forceinline__ uint32_t partOf(uint32_t group) { return lineOf(group) * 16 + threadIdx.x % 8 * 2; }
  static __device__ __forceinline__ uint32_t warps() { return blockDim.x / 32; }
  static __device__ __forceinline__ uint32_t lanesOfLine() { return 0xffu << threadIdx.x % 32 / 8 * 8; }
  // Whether the lanes of the calling lane's line run this in one instruction, thus what follows too: a line that they
  // load or store in several is not looked at, or does not arrive, whole. Lanes that branches have parted stay so as
  // long as the hardware likes, also behind __syncwarp().
  static __device__ __forceinline__ bool inStep() { return (__activemask() & lanesOfLine()) == lanesOfLine(); }

  // A warp's groups of four lines: kMost at once as long as there are so many whose lines are whole.
  template <uint32_t kMost>
  static __device__ __forceinline__ void forEachGroup(const Span& span, auto&& step) {
    uint32_t group = threadIdx.x / 32;
    const auto areWhole = [&](uint32_t count) {
      return ((group + (count - 1) * warps()) * 4 + 4) * kWords <= span.whole;
    };
    for (; areWhole(kMost); group += kMost * warps()) step.template operator()<kMost, true>(group);
    if constexpr (kMost > 1) {
      for (; areWhole(1); group += warps()) step.template operator()<1, true>(group);
    }
    for (; group * 4 < span.lines; group += warps()) step.template operator()<1, false>(group);
  }

  template <bool kWhole>
  static __device__ __forceinline__ Pair load(const void* from, uint32_t group, const Span& span) {
    const uint32_t word = wordOf(group);
    if (kWhole || word + 2 <= span.whole) return {loadWord(from, word), hasFlag() ? 0 : loadWord(from, word + 1)};
    if (word * 8 >= span.bytes) return {0, 0};
    return {loadPart(from, word, span.bytes), hasFlag() ? 0 : loadPart(from, word + 1, span.bytes)};
  }

  // The flag after all else.
  static __device__ __noinline__ void storeApart(uint64_t* to, uint64_t a, uint64_t b) {
    if (!hasFlag()) storeLine128(to, a, b);
    __threadfence_system();
    __syncwarp(lanesOfLine());
    if (hasFlag()) storeLine128(to, a, b);
  }

  // Whether the calling lane's line of a group is one of the span. Groups of which not all are, are taken one by one.
  template <bool kWhole>
  static __device__ __forceinline__ bool isHere(uint32_t group, const Span& span) {
    return kWhole || lineOf(group) < span.lines;
  }

  // To all sends and the target.
  template <uint32_t kUnroll, bool kWhole>
  __device__ __forceinline__ void put(const Move& move, const Span& span, uint32_t group,
                                      const Pair (&pairs)[kUnroll]) {
#pragma unroll 1  // long code takes longer than it saves: a peer is far away
    for (uint32_t k = move.to; k < move.to + move.tos; k++) {
      auto* const slot = steps_.template sendSlot<uint64_t>(k);
      const uint64_t flag = steps_.sendFlag(k);
      maybeDelay();
      if (!isHere<kWhole>(group, span)) continue;
      const auto storeAll = [&](auto&& store) {
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++)
          store(slot + partOf(group + u * warps()), pairs[u].a, hasFlag() ? flag : pairs[u].b);
      };
      if (inStep()) {
        storeAll(storeLine128);
      } else {
        storeAll(storeApart);
      }
    }
    if (move.target != nullptr) keep<kUnroll, kWhole>(move.target, span, group, pairs);
  }

  template <uint32_t kUnroll, bool kWhole>
  static __device__ __forceinline__ void keep(void* target, const Span& span, uint32_t group,
                                              const Pair (&pairs)[kUnroll]) {
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; u++) {
      const uint32_t word = wordOf(group + u * warps());
      if (kWhole || word + 2 <= span.whole) {
        storeWord(target, word, pairs[u].a);
        if (!hasFlag()) storeWord(target, word + 1, pairs[u].b);
      } else if (word * 8 < span.bytes) {
        storePart(target, word, span.bytes, pairs[u].a);
        if (!hasFlag()) storePart(target, word + 1, span.bytes, pairs[u].b);
      }
    }
  }

  // Lines of contributions [first, +kTogether) that are received, all looked at together.
  template <uint32_t kTogether, uint32_t kUnroll, bool kWhole>
  __device__ __forceinline__ void receive(const Contributions& contributions, uint32_t first, const Span& span,
                                          uint32_t group, Pair (&pairs)[kTogether][kUnroll], Patience& patience) {
    static_assert(kWhole || kUnroll == 1);
    for (bool cameBefore = false;; cameBefore = true) {
      bool missing, whole;
      do {
        maybeDelay();
        whole = true;
#pragma unroll
        for (uint32_t k = 0; k < kTogether; k++) {
          if (!contributions.isReceived(first + k) || !isHere<kWhole>(group, span)) continue;
          const auto* const slot = steps_.template receiveSlot<const uint64_t>(contributions.connection(first + k));
          whole = inStep() && whole;
#pragma unroll
          for (uint32_t u = 0; u < kUnroll; u++)
            loadLine128(slot + partOf(group + u * warps()), pairs[k][u].a, pairs[k][u].b);
        }
        missing = false;
#pragma unroll
        for (uint32_t k = 0; k < kTogether; k++) {
          if (!contributions.isReceived(first + k)) continue;
          const uint32_t flag = steps_.receiveFlag(contributions.connection(first + k));
#pragma unroll
          for (uint32_t u = 0; u < kUnroll; u++)
            missing = missing || (isHere<kWhole>(group, span) && hasFlag() && pairs[k][u].b != flag);
        }
      } while (__any_sync(kAll, missing) && !__any_sync(kAll, patience.over()));
      if (cameBefore || !__any_sync(kAll, !whole)) return;
      // What was looked at in parts may be older than its flag: once more, now that all has come.
      __threadfence_system();
    }
  }

  template <uint32_t kUnroll, bool kWhole>
  static __device__ __forceinline__ void loadOwn(const void* own, const Span& span, uint32_t group,
                                                 Pair (&pairs)[kUnroll]) {
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; u++) pairs[u] = load<kWhole>(own, group + u * warps(), span);
  }

  // One contribution at most, as it is.
  template <uint32_t kUnroll, bool kWhole>
  __device__ __forceinline__ void pass(const Move& move, const Span& span, uint32_t group, Patience& patience) {
    Pair pairs[1][kUnroll]{};
    if (move.own != nullptr) {
      loadOwn<kUnroll, kWhole>(move.own, span, group, pairs[0]);
    } else if (move.froms > 0) {
      receive<1, kUnroll, kWhole>(Contributions(move), 0, span, group, pairs, patience);
    }
    put<kUnroll, kWhole>(move, span, group, pairs[0]);
  }

  template <uint32_t kTogether, uint32_t kUnroll, bool kWhole>
  __device__ __forceinline__ void fold(const Move& move, const Span& span, uint32_t group, Patience& patience) {
    const Contributions contributions(move);
    typename WordFold<AllKinds>::Folding foldings[kUnroll][2];
    Pair own[kUnroll]{};
    if (move.own != nullptr) {
      loadOwn<kUnroll, kWhole>(move.own, span, group, own);
      if (fold_.scales()) {
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) own[u] = {fold_.scaled(own[u].a), fold_.scaled(own[u].b)};
      }
    }
#pragma unroll 1
    for (uint32_t first = 0; first < contributions.count(); first += kTogether) {
      Pair pairs[kTogether][kUnroll]{};
#pragma unroll
      for (uint32_t k = 0; k < kTogether; k++) {
        if (!contributions.isOwn(first + k)) continue;
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) pairs[k][u] = own[u];
      }
      receive<kTogether, kUnroll, kWhole>(contributions, first, span, group, pairs, patience);
#pragma unroll
      for (uint32_t k = 0; k < kTogether; k++) {
        if (!contributions.has(first + k)) break;
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) {
          foldings[u][0].take(fold_, pairs[k][u].a, k == 0 && first == 0);
          foldings[u][1].take(fold_, pairs[k][u].b, k == 0 && first == 0);
        }
      }
    }
    Pair results[kUnroll];
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; u++)
      results[u] = {foldings[u][0].result(fold_, isResult(move)), foldings[u][1].result(fold_, isResult(move))};
    put<kUnroll, kWhole>(move, span, group, results);
  }

  __device__ __forceinline__ void renew(const Move& move, uint32_t lines) {
    bool due = false;
    for (uint32_t k = move.to; k < move.to + move.tos; k++) due = due || steps_.isRenewal(k);
    if (due) renewApart(steps_, move.to, move.tos, lines);
  }
  // Hardly ever: its registers should not be taken from what is always done.
  static __device__ __noinline__ void renewApart(const Steps<kProtocol> steps, uint32_t to, uint32_t tos,
                                                 uint32_t lines) {
    for (uint32_t k = to; k < to + tos; k++) {
      if (!steps.isRenewal(k)) continue;
      for (uint32_t line = lines + threadIdx.x / 8; line < steps.slotBytes() / 128; line += blockDim.x / 8) {
        storeLine128(steps.template sendSlot<uint64_t>(k) + line * 16 + threadIdx.x % 8 * 2, 0,
                     hasFlag() ? steps.sendFlag(k) : 0);
      }
    }
  }

  const Launch& launch_;
  Ends& ends_;
  const WordFold<AllKinds> fold_;
  Steps<kProtocol> steps_;
};

}  // namespace ncclrun::cuda
