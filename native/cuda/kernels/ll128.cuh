// Protocol LL128. Eight lanes store a line of 128 bytes: 120 of data, then the flag. Requires that the link delivers
// stores of 128 bytes atomically.
#pragma once
#include "cuda/kernels/ll_steps.cuh"
#include "cuda/kernels/words.cuh"

namespace ncclrun::cuda {

// Steps: LLSteps, or SingleStep for single-step launches, which also takes the block's item and channel.
template <class Ops, template <uint32_t> class Steps = LLSteps>
class LL128 {
 public:
  static constexpr uint32_t kProtocol = 2;
  using Connections = typename Steps<kProtocol>::Connections;
  static constexpr bool kSingleStep = Steps<kProtocol>::kSingleStep;

  __device__ LL128(const Launch& launch, Connections& connections, const auto&... position)
      : launch_(launch), connections_(connections), reduction_(launch), steps_(launch, connections, position...) {}

  __device__ uint32_t slotBytes() const { return steps_.slotBytes() / 128 * kWords * 8; }
  __device__ uint32_t slots() const { return steps_.slots(); }
  // Copies a single rank's contribution. Contains no barrier.
  __device__ void copy(const void* source, void* target, size_t bytes) {
    copyWords<Ops>(reduction_, source, target, bytes);
  }
  __device__ void finishSends() {}  // each thread has loaded what it stores
  __device__ void finish() { steps_.finish(); }

  __device__ __forceinline__ void move(const Move& move) {
    steps_.awaitCredits(move);
    SpinWait spin(launch_, connections_);
    const uint32_t bytes = uint32_t(move.count) * launch_.elementBytes;
    const Span span = spanOf(bytes, wholeWords(move.own, move.target, bytes));
    if (!isReduced(move, reduction_)) {
      forEachGroup<kSingleStep ? 2 : 4>(span, [&]<uint32_t kUnroll, bool kWhole>(uint32_t group) {
        forward<kUnroll, kWhole>(move, span, group, spin);
      });
    } else if constexpr (WordReduction<Ops>::kReduces) {
      // Sums are unrolled at full length; single-step messages of other operators are short.
      constexpr bool kShort = kSingleStep && WordReduction<Ops>::kChooses;
      if (move.receiveCount == 1) {
        forEachGroup<kShort ? 1 : 4>(span, [&]<uint32_t kUnroll, bool kWhole>(uint32_t group) {
          reduce<2, kUnroll, kWhole>(move, span, group, spin);
        });
      } else {
        forEachGroup<kShort ? 1 : 2>(span, [&]<uint32_t kUnroll, bool kWhole>(uint32_t group) {
          reduce<4, kUnroll, kWhole>(move, span, group, spin);
        });
      }
    }
    renewSlots(move, span.lines);
    steps_.post(move, bytes);
  }

  // Executes a move that only sends and, unless `target` is null, copies as many bytes from `source` meanwhile: the
  // link dominates the time, so that the local copy costs nothing.
  __device__ __forceinline__ void sendAndCopy(const Move& move, const void* source, void* target) {
    steps_.awaitCredits(move);
    const uint32_t bytes = uint32_t(move.count) * launch_.elementBytes;
    const uint32_t sends = wholeWords(move.own, target, bytes);
    const Span span = spanOf(bytes, target == nullptr || sends == 0 ? sends : wholeWords(source, target, bytes));
    forEachGroup<kSingleStep ? 2 : 4>(span, [&]<uint32_t kUnroll, bool kWhole>(uint32_t group) {
      Pair sent[kUnroll], own[kUnroll];
      loadOwn<kUnroll, kWhole>(move.own, span, group, sent);
      if (target != nullptr) loadOwn<kUnroll, kWhole>(source, span, group, own);
      storeAndSend<kUnroll, kWhole>(move, span, group, sent);
      if (target != nullptr) storeTarget<kUnroll, kWhole>(target, span, group, own);
    });
    renewSlots(move, span.lines);
    steps_.post(move, bytes);
  }

 private:
  static constexpr uint32_t kWords = 15;  // per line
  static constexpr uint32_t kAllLanes = ~0u;

  struct Span {
    uint32_t bytes;
    uint32_t whole;  // leading words that one access each loads or stores
    uint32_t lines;
  };
  static __device__ __forceinline__ Span spanOf(uint32_t bytes, uint32_t whole) {
    return {bytes, whole, (bytes + kWords * 8 - 1) / (kWords * 8)};
  }
  // A lane's two words of a line; the last lane has one word and the flag.
  struct Pair {
    uint64_t a, b;
  };
  static __device__ __forceinline__ bool hasFlag() { return threadIdx.x % 8 == 7; }
  static __device__ __forceinline__ uint32_t lineOf(uint32_t group) { return group * 4 + threadIdx.x % 32 / 8; }
  static __device__ __forceinline__ uint32_t wordOf(uint32_t group) {
    return lineOf(group) * kWords + threadIdx.x % 8 * 2;
  }
  static __device__ __forceinline__ uint32_t slotWordOf(uint32_t group) {
    return lineOf(group) * 16 + threadIdx.x % 8 * 2;
  }
  static __device__ __forceinline__ uint32_t warps() { return blockDim.x / 32; }
  static __device__ __forceinline__ uint32_t lanesOfLine() { return 0xffu << threadIdx.x % 32 / 8 * 8; }
  // True if the eight lanes of the calling lane's line execute in the same instruction, and thus the next access too. A
  // line that they load or store in several instructions is not atomic. The hardware may storeTarget lanes that a
  // branch has diverged apart for any time, even after __syncwarp().
  static __device__ __forceinline__ bool inStep() { return (__activemask() & lanesOfLine()) == lanesOfLine(); }

  // Iterates over a warp's groups of four lines, kMax groups at once as long as all their lines are whole.
  template <uint32_t kMax>
  static __device__ __forceinline__ void forEachGroup(const Span& span, auto&& step) {
    uint32_t group = threadIdx.x / 32;
    const auto areWhole = [&](uint32_t count) {
      return ((group + (count - 1) * warps()) * 4 + 4) * kWords <= span.whole;
    };
    for (; areWhole(kMax); group += kMax * warps()) step.template operator()<kMax, true>(group);
    if constexpr (kMax > 1) {
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

  // Stores the flag after all other words.
  static __device__ __noinline__ void storeFlagLast(uint64_t* to, uint64_t a, uint64_t b) {
    if (!hasFlag()) storeLL128Line(to, a, b);
    __threadfence_system();
    __syncwarp(lanesOfLine());
    if (hasFlag()) storeLL128Line(to, a, b);
  }

  // True if the calling lane's line of a group belongs to the span.
  template <bool kWhole>
  static __device__ __forceinline__ bool isInSpan(uint32_t group, const Span& span) {
    return kWhole || lineOf(group) < span.lines;
  }

  // Stores into the slots of all sends and into the target.
  template <uint32_t kUnroll, bool kWhole>
  __device__ __forceinline__ void storeAndSend(const Move& move, const Span& span, uint32_t group,
                                               const Pair (&pairs)[kUnroll]) {
#pragma unroll 1  // unrolled code would cost more than it saves: the peer is far away
    for (uint32_t k = move.to; k < move.to + move.sendCount; k++) {
      auto* const slot = steps_.template sendSlot<uint64_t>(k);
      const uint64_t flag = steps_.sendFlag(k);
      maybeDelay();
      if (!isInSpan<kWhole>(group, span)) continue;
      const auto storeAll = [&](auto&& store) {
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++)
          store(slot + slotWordOf(group + u * warps()), pairs[u].a, hasFlag() ? flag : pairs[u].b);
      };
      if (inStep()) {
        storeAll(storeLL128Line);
      } else {
        storeAll(storeFlagLast);
      }
    }
    if (move.target != nullptr) storeTarget<kUnroll, kWhole>(move.target, span, group, pairs);
  }

  template <uint32_t kUnroll, bool kWhole>
  static __device__ __forceinline__ void storeTarget(void* target, const Span& span, uint32_t group,
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

  // Receives the lines of contributions [first, +kAtOnce), polling all of them together.
  template <uint32_t kAtOnce, uint32_t kUnroll, bool kWhole>
  __device__ __forceinline__ void receive(const Contributions& contributions, uint32_t first, const Span& span,
                                          uint32_t group, Pair (&pairs)[kAtOnce][kUnroll], SpinWait& spin) {
    static_assert(kWhole || kUnroll == 1);
    for (bool isReload = false;; isReload = true) {
      bool missing, whole;
      do {
        maybeDelay();
        whole = true;
#pragma unroll
        for (uint32_t k = 0; k < kAtOnce; k++) {
          if (!contributions.isReceived(first + k) || !isInSpan<kWhole>(group, span)) continue;
          const auto* const slot = steps_.template receiveSlot<const uint64_t>(contributions.connection(first + k));
          whole = inStep() && whole;
#pragma unroll
          for (uint32_t u = 0; u < kUnroll; u++)
            loadLL128Line(slot + slotWordOf(group + u * warps()), pairs[k][u].a, pairs[k][u].b);
        }
        missing = false;
#pragma unroll
        for (uint32_t k = 0; k < kAtOnce; k++) {
          if (!contributions.isReceived(first + k)) continue;
          const uint32_t flag = steps_.receiveFlag(contributions.connection(first + k));
#pragma unroll
          for (uint32_t u = 0; u < kUnroll; u++)
            missing = missing || (isInSpan<kWhole>(group, span) && hasFlag() && pairs[k][u].b != flag);
        }
      } while (__any_sync(kAllLanes, missing) && !__any_sync(kAllLanes, spin.gaveUp()));
      if (isReload || !__any_sync(kAllLanes, !whole)) return;
      // Data of a line that was loaded in several instructions may be older than its flag: load it once more, now that
      // all lines have arrived.
      __threadfence_system();
    }
  }

  template <uint32_t kUnroll, bool kWhole>
  static __device__ __forceinline__ void loadOwn(const void* own, const Span& span, uint32_t group,
                                                 Pair (&pairs)[kUnroll]) {
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; u++) pairs[u] = load<kWhole>(own, group + u * warps(), span);
  }

  // Forwards at most one contribution unchanged.
  template <uint32_t kUnroll, bool kWhole>
  __device__ __forceinline__ void forward(const Move& move, const Span& span, uint32_t group, SpinWait& spin) {
    Pair pairs[1][kUnroll]{};
    if (move.own != nullptr) {
      loadOwn<kUnroll, kWhole>(move.own, span, group, pairs[0]);
    } else if (move.receiveCount > 0) {
      receive<1, kUnroll, kWhole>(Contributions(move), 0, span, group, pairs, spin);
    }
    storeAndSend<kUnroll, kWhole>(move, span, group, pairs[0]);
  }

  template <uint32_t kAtOnce, uint32_t kUnroll, bool kWhole>
  __device__ __forceinline__ void reduce(const Move& move, const Span& span, uint32_t group, SpinWait& spin) {
    const Contributions contributions(move);
    typename WordReduction<Ops>::Accumulator accumulators[kUnroll][2];
    Pair own[kUnroll]{};
    if (move.own != nullptr) {
      loadOwn<kUnroll, kWhole>(move.own, span, group, own);
      if (reduction_.scales()) {
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) own[u] = {reduction_.scaled(own[u].a), reduction_.scaled(own[u].b)};
      }
    }
#pragma unroll 1
    for (uint32_t first = 0; first < contributions.count(); first += kAtOnce) {
      Pair pairs[kAtOnce][kUnroll]{};
#pragma unroll
      for (uint32_t k = 0; k < kAtOnce; k++) {
        if (!contributions.isOwn(first + k)) continue;
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) pairs[k][u] = own[u];
      }
      receive<kAtOnce, kUnroll, kWhole>(contributions, first, span, group, pairs, spin);
#pragma unroll
      for (uint32_t k = 0; k < kAtOnce; k++) {
        if (!contributions.has(first + k)) break;
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) {
          accumulators[u][0].take(reduction_, pairs[k][u].a, k == 0 && first == 0);
          accumulators[u][1].take(reduction_, pairs[k][u].b, k == 0 && first == 0);
        }
      }
    }
    Pair results[kUnroll];
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; u++)
      results[u] = {accumulators[u][0].result(reduction_, isResult(move)),
                    accumulators[u][1].result(reduction_, isResult(move))};
    storeAndSend<kUnroll, kWhole>(move, span, group, results);
  }

  __device__ __forceinline__ void renewSlots(const Move& move, uint32_t lines) {
    bool due = false;
    for (uint32_t k = move.to; k < move.to + move.sendCount; k++) due = due || steps_.isRenewalDue(k);
    if (due) renewSlotsNow(steps_, move.to, move.sendCount, lines);
  }
  // Fills the slot's remaining lines, so that no flag gets as old as the counter's period (isRenewed). Rare: not
  // inlined, so that it takes no registers from the common path.
  static __device__ __noinline__ void renewSlotsNow(const Steps<kProtocol> steps, uint32_t to, uint32_t sendCount,
                                                    uint32_t lines) {
    for (uint32_t k = to; k < to + sendCount; k++) {
      if (!steps.isRenewalDue(k)) continue;
      for (uint32_t line = lines + threadIdx.x / 8; line < steps.slotBytes() / 128; line += blockDim.x / 8) {
        storeLL128Line(steps.template sendSlot<uint64_t>(k) + line * 16 + threadIdx.x % 8 * 2, 0,
                       hasFlag() ? steps.sendFlag(k) : 0);
      }
    }
  }

  const Launch& launch_;
  Connections& connections_;
  const WordReduction<Ops> reduction_;
  Steps<kProtocol> steps_;
};

}  // namespace ncclrun::cuda
