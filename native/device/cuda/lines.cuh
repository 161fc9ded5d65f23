// Protocols LL and LL128: the data carries flags, so that it says itself when it is there. No barrier stands between a
// sender's load and the receiver's: each thread (LL) or warp (LL128) waits for its own lines alone.
//
//   LL     a line of 16 bytes, a thread's: 4 of data, the flag, 4 of data, the flag. Every 8 bytes arrive whole.
//   LL128  a line of 128 bytes, eight lanes': 120 of data, then the flag. Only where 128 bytes arrive whole.
//
// The flag is the step's number: what an earlier step has left is no message.
#pragma once
#include "algorithm/work.h"
#include "device/cuda/arithmetic.cuh"
#include "device/cuda/ends.cuh"
#include "device/cuda/move.cuh"

namespace ncclrun::cuda {

// What the two have in common: which step a connection is at, credit, words of the user's memory.
template <uint32_t kNumber, uint32_t kStepBytes, uint32_t kPayload>
class Lines {
 public:
  static constexpr uint32_t kProtocol = kNumber;

  __device__ Lines(const Launch& launch, Ends& ends) : launch_(launch), ends_(ends) {
    for (uint32_t i = 0; i < kMaxPeers; i++) received_[i] = sent_[i] = 0;
  }

  __device__ uint32_t slotBytes() const { return kPayload; }

  // A single rank's contribution; no barrier inside.
  template <class T, class Op>
  __device__ __noinline__ void copy(const void* source, void* target, size_t count) {
    const size_t bytes = count * sizeof(T);
    const Adjustment<T> adjust = adjustmentOf<T, Op>(launch_);
    for (size_t i = threadIdx.x; i * 8 < bytes; i += blockDim.x) {
      Folding<T, Op, 8> folding(adjust);
      folding.begin(loadWord<T>(source, i, bytes), true);
      storeWord<T>(target, i, bytes, folding.result());
    }
  }

  // After the last move.
  __device__ void finish() {
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (uint32_t i = 0; i < kMaxPeers; i++) {
      ends_.receives[i].step += received_[i];
      ends_.sends[i].step += sent_[i];
    }
  }

 protected:
  // A sender fills whole slots once in a while: so no flag is ever as old as the counter's period.
  static constexpr uint32_t kRenewal = 1u << 30;

  // What a move folds: what it receives, and our own in between.
  static __device__ __forceinline__ uint32_t contributionsOf(const Move& move) {
    return move.froms + (move.own != nullptr ? 1 : 0);
  }
  static __device__ __forceinline__ bool isOwnAt(const Move& move, uint32_t number) {
    return move.own != nullptr && number == lesser(move.place, move.froms);
  }
  static __device__ __forceinline__ uint32_t connectionAt(const Move& move, uint32_t number) {
    return move.from + number - (move.own != nullptr && number > move.place ? 1 : 0);
  }

  static __device__ __forceinline__ uint32_t flagOf(uint32_t step) { return step + 1; }
  __device__ uint32_t receiveStep(uint32_t i) const { return ends_.receives[i].step + received_[i]; }
  __device__ uint32_t sendStep(uint32_t i) const { return ends_.sends[i].step + sent_[i]; }
  static __device__ char* slotAt(const End& end, uint32_t step) {
    return end.slots + step % kLineSteps * uint64_t(kStepBytes);
  }

  // Waits until all sends [to, +tos) have a free slot. All threads agree on whether there is one.
  __device__ void awaitCredits(const Move& move) {
    bool all = true;
    for (uint32_t i = move.to; i < move.to + move.tos; i++)
      all = all && reached(ends_.sends[i].freed + kLineSteps, sendStep(i) + 1);
    if (all) return;
    __syncthreads();
    if (threadIdx.x == 0) {
      Patience patience(launch_, ends_);
      for (uint32_t i = move.to; i < move.to + move.tos; i++) {
        End& end = ends_.sends[i];
        while (!reached(end.freed + kLineSteps, sendStep(i) + 1)) {
          end.freed = loadAcquire(end.head);
          if (!reached(end.freed + kLineSteps, sendStep(i) + 1) && patience.over()) break;
        }
      }
    }
    __syncthreads();
  }

  // Counts the step; tells senders of every second half of the slots at once.
  __device__ void handOn(const Move& move, size_t elementBytes) {
    bool tells = false;
    const auto due = [&](uint32_t i) { return (receiveStep(i) + 1) % (kLineSteps / 2) == 0; };
    for (uint32_t i = move.from; i < move.from + move.froms; i++) tells = tells || due(i);
    if (tells) __syncthreads();  // all have read
    if (threadIdx.x == 0) {
      const uint64_t bytes = move.count * elementBytes;
      for (uint32_t i = move.from; i < move.from + move.froms; i++) {
        ends_.receives[i].bytes += bytes;
        if (due(i)) storeRelease(ends_.receives[i].head, receiveStep(i) + 1);
      }
      for (uint32_t i = move.to; i < move.to + move.tos; i++) ends_.sends[i].bytes += bytes;
    }
    for (uint32_t i = move.from; i < move.from + move.froms; i++) received_[i]++;
    for (uint32_t i = move.to; i < move.to + move.tos; i++) sent_[i]++;
  }

  template <class T>
  static __device__ __forceinline__ Pack<T, 8> loadWord(const void* from, size_t i, size_t bytes) {
    const char* at = static_cast<const char*>(from) + i * 8;
    if (reinterpret_cast<uintptr_t>(at) % 8 == 0 && i * 8 + 8 <= bytes) return *reinterpret_cast<const Pack<T, 8>*>(at);
    Pack<T, 8> word;
    for (uint32_t b = 0; b < 8 && i * 8 + b < bytes; b++) reinterpret_cast<char*>(&word)[b] = at[b];
    return word;
  }
  template <class T>
  static __device__ __forceinline__ void storeWord(void* to, size_t i, size_t bytes, const Pack<T, 8>& word) {
    char* at = static_cast<char*>(to) + i * 8;
    if (reinterpret_cast<uintptr_t>(at) % 8 == 0 && i * 8 + 8 <= bytes) {
      *reinterpret_cast<Pack<T, 8>*>(at) = word;
      return;
    }
    for (uint32_t b = 0; b < 8 && i * 8 + b < bytes; b++) at[b] = reinterpret_cast<const char*>(&word)[b];
  }
  template <class T>
  static __device__ __forceinline__ uint64_t bitsOf(const Pack<T, 8>& word) {
    return *reinterpret_cast<const uint64_t*>(&word);
  }
  template <class T>
  static __device__ __forceinline__ Pack<T, 8> wordOf(uint64_t bits) {
    return *reinterpret_cast<const Pack<T, 8>*>(&bits);
  }

  const Launch& launch_;
  Ends& ends_;
  uint32_t received_[kMaxPeers], sent_[kMaxPeers];  // steps of this item so far
};

// How many connections are looked at together.
inline constexpr uint32_t kTogether = 4;

class Lines64 : public Lines<1, kLine64StepBytes, kLine64Payload> {
 public:
  using Lines::Lines;

  template <class T, class Op>
  __device__ __noinline__ void move(const Move& move) {
    awaitCredits(move);
    Patience patience(launch_, ends_);
    const Adjustment<T> adjust = adjustmentFor<T, Op>(launch_, move);
    const size_t bytes = move.empty ? 8 : move.count * sizeof(T);
    const uint32_t contributions = contributionsOf(move);
    for (size_t i = threadIdx.x; i * 8 < bytes; i += blockDim.x) {
      Folding<T, Op, 8> folding(adjust);
      Pack<T, 8> mine;
      if (move.own != nullptr) mine = loadWord<T>(move.own, i, bytes);
      for (uint32_t first = 0; first < contributions; first += kTogether) {
        uint4 lines[kTogether];
        receive(move, first, contributions, i, lines, patience);
#pragma unroll
        for (uint32_t k = 0; k < kTogether; k++) {
          if (first + k >= contributions) break;
          const bool isOwn = isOwnAt(move, first + k);
          const Pack<T, 8> word = isOwn ? mine : wordOf<T>(uint64_t(lines[k].z) << 32 | lines[k].x);
          folding.take(word, isOwn, first + k == 0);
        }
      }
      Pack<T, 8> result;
      if (contributions > 0) result = folding.result();
      for (uint32_t k = move.to; k < move.to + move.tos; k++) {
        const uint32_t step = sendStep(k);
        storeLine64(lineAt(ends_.sends[k], step, i), bitsOf<T>(result), flagOf(step));
      }
      if (move.target != nullptr) storeWord<T>(move.target, i, bytes, result);
    }
    renew(move, (bytes + 7) / 8);
    handOn(move, sizeof(T));
  }

 private:
  static __device__ __forceinline__ uint4* lineAt(const End& end, uint32_t step, size_t i) {
    return reinterpret_cast<uint4*>(slotAt(end, step)) + i;
  }

  // Line i of contributions [first, +kTogether) but our own.
  __device__ __forceinline__ void receive(const Move& move, uint32_t first, uint32_t contributions, size_t i,
                                          uint4 (&lines)[kTogether], Patience& patience) {
    const uint4* at[kTogether];
    uint32_t flags[kTogether];
#pragma unroll
    for (uint32_t k = 0; k < kTogether; k++) {
      at[k] = nullptr;
      if (first + k >= contributions || isOwnAt(move, first + k)) continue;
      const uint32_t end = connectionAt(move, first + k);
      const uint32_t step = receiveStep(end);
      at[k] = lineAt(ends_.receives[end], step, i);
      flags[k] = flagOf(step);
    }
    for (;;) {
      bool all = true;
#pragma unroll
      for (uint32_t k = 0; k < kTogether; k++) {
        if (at[k] != nullptr) lines[k] = loadLine64(at[k]);
      }
#pragma unroll
      for (uint32_t k = 0; k < kTogether; k++) {
        if (at[k] != nullptr) all = all && lines[k].y == flags[k] && lines[k].w == flags[k];
      }
      if (all || patience.over()) return;
    }
  }

  __device__ void renew(const Move& move, size_t words) {
    for (uint32_t k = move.to; k < move.to + move.tos; k++) {
      const uint32_t step = sendStep(k);
      if (step % kRenewal >= kLineSteps) continue;
      for (size_t i = words + threadIdx.x; i < kLine64StepBytes / 16; i += blockDim.x)
        storeLine64(lineAt(ends_.sends[k], step, i), 0, flagOf(step));
    }
  }
};

class Lines128 : public Lines<2, kLine128StepBytes, kLine128Payload> {
  static constexpr uint32_t kWords = 15;  // of a line
  static constexpr uint32_t kAll = ~0u;

 public:
  using Lines::Lines;

  template <class T, class Op>
  __device__ __noinline__ void move(const Move& move) {
    awaitCredits(move);
    Patience patience(launch_, ends_);
    const Adjustment<T> adjust = adjustmentFor<T, Op>(launch_, move);
    const size_t bytes = move.empty ? 8 : move.count * sizeof(T);
    const size_t lines = (bytes + kWords * 8 - 1) / (kWords * 8);
    const uint32_t contributions = contributionsOf(move);
    for (size_t first = threadIdx.x / 32 * 4; first < lines; first += blockDim.x / 32 * 4) {
      const size_t line = first + threadIdx.x % 32 / 8;
      const uint32_t part = threadIdx.x % 8;  // two words of the line; the last has one and the flag
      const size_t word = line * kWords + part * 2;
      const bool hasA = line < lines && word * 8 < bytes;
      const bool hasB = part < 7 && hasA && (word + 1) * 8 < bytes;
      Folding<T, Op, 8> foldingA(adjust), foldingB(adjust);
      Pack<T, 8> mineA, mineB;
      if (move.own != nullptr && hasA) mineA = loadWord<T>(move.own, word, bytes);
      if (move.own != nullptr && hasB) mineB = loadWord<T>(move.own, word + 1, bytes);
      for (uint32_t from = 0; from < contributions; from += kTogether) {
        uint64_t a[kTogether], b[kTogether];
        receive(move, from, contributions, line, line < lines, a, b, patience);
#pragma unroll
        for (uint32_t k = 0; k < kTogether; k++) {
          if (from + k >= contributions) break;
          const bool isOwn = isOwnAt(move, from + k);
          foldingA.take(isOwn ? mineA : wordOf<T>(a[k]), isOwn, from + k == 0);
          foldingB.take(isOwn ? mineB : wordOf<T>(b[k]), isOwn, from + k == 0);
        }
      }
      Pack<T, 8> resultA, resultB;
      if (contributions > 0) {
        resultA = foldingA.result();
        resultB = foldingB.result();
      }
      for (uint32_t k = move.to; k < move.to + move.tos; k++) {
        const uint32_t step = sendStep(k);
        __syncwarp();
        if (line < lines) {
          storeLine128(partAt(ends_.sends[k], step, line), bitsOf<T>(resultA),
                       part == 7 ? flagOf(step) : bitsOf<T>(resultB));
        }
      }
      if (move.target != nullptr) {
        if (hasA) storeWord<T>(move.target, word, bytes, resultA);
        if (hasB) storeWord<T>(move.target, word + 1, bytes, resultB);
      }
    }
    renew(move, lines);
    handOn(move, sizeof(T));
  }

 private:
  static __device__ __forceinline__ uint64_t* partAt(const End& end, uint32_t step, size_t line) {
    return reinterpret_cast<uint64_t*>(slotAt(end, step)) + line * 16 + threadIdx.x % 8 * 2;
  }

  // Our part of a line of contributions [first, +kTogether) but our own; here: we have one.
  __device__ __forceinline__ void receive(const Move& move, uint32_t first, uint32_t contributions, size_t line,
                                          bool here, uint64_t (&a)[kTogether], uint64_t (&b)[kTogether],
                                          Patience& patience) {
    for (;;) {
      bool missing = false;
#pragma unroll
      for (uint32_t k = 0; k < kTogether; k++) {
        if (first + k >= contributions || isOwnAt(move, first + k)) continue;
        const uint32_t end = connectionAt(move, first + k);
        const uint32_t step = receiveStep(end);
        if (here) loadLine128(partAt(ends_.receives[end], step, line), a[k], b[k]);
        missing = missing || (here && threadIdx.x % 8 == 7 && b[k] != flagOf(step));
      }
      if (!__any_sync(kAll, missing)) return;
      if (__any_sync(kAll, patience.over())) return;
    }
  }

  __device__ void renew(const Move& move, size_t lines) {
    for (uint32_t k = move.to; k < move.to + move.tos; k++) {
      const uint32_t step = sendStep(k);
      if (step % kRenewal >= kLineSteps) continue;
      for (size_t line = lines + threadIdx.x / 8; line < kLine128StepBytes / 128; line += blockDim.x / 8)
        storeLine128(partAt(ends_.sends[k], step, line), 0, threadIdx.x % 8 == 7 ? flagOf(step) : 0);
    }
  }
};

}  // namespace ncclrun::cuda
