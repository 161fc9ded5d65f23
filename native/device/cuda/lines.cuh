// Protocols LL and LL128: the data carries flags, so that it says itself when it is there. No barrier stands between a
// sender's load and the receiver's: each thread (LL) or warp (LL128) waits for its own lines alone.
//
//   LL     a line of 16 bytes, a thread's: 4 of data, the flag, 4 of data, the flag. Every 8 bytes arrive whole.
//   LL128  a line of 128 bytes, eight lanes': 120 of data, then the flag. Only where 128 bytes arrive whole.
//
// The flag is the step's number: what an earlier step has left is no message.
#pragma once
#include "algorithm/work.h"
#include "device/cuda/any_folding.cuh"
#include "device/cuda/ends.cuh"
#include "device/cuda/move.cuh"

namespace ncclrun::cuda {

// Small numbers by connection, in registers.
class Counts {
 public:
  __device__ __forceinline__ uint32_t operator[](uint32_t i) const {
    return uint32_t((i < 8 ? low_ : high_) >> (i % 8 * 8)) & 0xff;
  }
  __device__ __forceinline__ void increment(uint32_t i) { (i < 8 ? low_ : high_) += 1ull << (i % 8 * 8); }
  __device__ __forceinline__ void clear() { low_ = high_ = 0; }

 private:
  uint64_t low_ = 0, high_ = 0;
};

// What the two have in common: which step a connection is at, credit, words of the user's memory.
template <class AllKinds, uint32_t kNumber, uint32_t kStepBytes, uint32_t kPayload>
class Lines {
 public:
  static constexpr uint32_t kProtocol = kNumber;

  __device__ Lines(const Launch& launch, Ends& ends) : launch_(launch), ends_(ends), fold_(launch) {}

  __device__ uint32_t slotBytes() const { return kPayload; }

  // A single rank's contribution; no barrier inside.
  __device__ void copy(const void* source, void* target, size_t bytes) {
    for (size_t i = threadIdx.x; i * 8 < bytes; i += blockDim.x) {
      Folding folding;
      folding.take(fold_, loadWord(source, i, bytes), true, true);
      storeWord(target, i, bytes, folding.result(fold_, false));
    }
  }

  // After the last move: the steps are in the ends again.
  __device__ void finish() {
    __syncthreads();
    if (threadIdx.x == 0) {
      for (uint32_t i = 0; i < kMaxPeers; i++) {
        ends_.receives[i].step += received_[i];
        ends_.sends[i].step += sent_[i];
      }
    }
    received_.clear();
    sent_.clear();
    __syncthreads();
  }

 protected:
  using Folding = typename WordFold<AllKinds>::Folding;
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
    bool many = false;
    for (uint32_t i = move.from; i < move.from + move.froms; i++) {
      received_.increment(i);
      many = many || received_[i] == kMany;
    }
    for (uint32_t i = move.to; i < move.to + move.tos; i++) {
      sent_.increment(i);
      many = many || sent_[i] == kMany;
    }
    if (many) finish();
  }

  static __device__ __forceinline__ uint64_t loadWord(const void* from, size_t i, size_t bytes) {
    const char* at = static_cast<const char*>(from) + i * 8;
    if (reinterpret_cast<uintptr_t>(at) % 8 == 0 && i * 8 + 8 <= bytes) return *reinterpret_cast<const uint64_t*>(at);
    uint64_t word = 0;
    for (uint32_t b = 0; b < 8 && i * 8 + b < bytes; b++) word |= uint64_t(uint8_t(at[b])) << (8 * b);
    return word;
  }
  static __device__ __forceinline__ void storeWord(void* to, size_t i, size_t bytes, uint64_t word) {
    char* at = static_cast<char*>(to) + i * 8;
    if (reinterpret_cast<uintptr_t>(at) % 8 == 0 && i * 8 + 8 <= bytes) {
      *reinterpret_cast<uint64_t*>(at) = word;
      return;
    }
    for (uint32_t b = 0; b < 8 && i * 8 + b < bytes; b++) at[b] = char(word >> (8 * b));
  }
  // What is folded into a user's buffer is the result, which is divided.
  static __device__ __forceinline__ bool divides(const Move& move) {
    return move.own != nullptr && move.froms > 0 && move.target != nullptr;
  }

  static constexpr uint32_t kMany = 200;  // steps that Counts hold

  const Launch& launch_;
  Ends& ends_;
  const WordFold<AllKinds> fold_;
  Counts received_, sent_;  // steps since finish()
};

// How many connections are looked at together.
inline constexpr uint32_t kTogether = 4;

template <class AllKinds>
class Lines64 : public Lines<AllKinds, 1, kLine64StepBytes, kLine64Payload> {
  using Base = Lines<AllKinds, 1, kLine64StepBytes, kLine64Payload>;
  using Base::awaitCredits;
  using Base::connectionAt;
  using Base::contributionsOf;
  using Base::divides;
  using Base::ends_;
  using Base::flagOf;
  using Base::fold_;
  using Base::handOn;
  using Base::isOwnAt;
  using Base::kRenewal;
  using Base::launch_;
  using Base::loadWord;
  using Base::receiveStep;
  using Base::sendStep;
  using Base::slotAt;
  using Base::storeWord;
  using typename Base::Folding;

 public:
  using Base::Base;

  __device__ __forceinline__ void move(const Move& move) {
    awaitCredits(move);
    Patience patience(launch_, ends_);
    const size_t bytes = move.empty ? 8 : move.count * launch_.elementBytes;
    const uint32_t contributions = contributionsOf(move);
    if (contributions <= 1 && !fold_.scales(move.own != nullptr)) {
      pass(move, bytes, patience);
    } else if constexpr (AllKinds::kReduces) {
      fold(move, bytes, contributions, patience);
    }
    renew(move, (bytes + 7) / 8);
    handOn(move, launch_.elementBytes);
  }

 private:
  // To all sends and the target.
  __device__ __forceinline__ void put(const Move& move, size_t bytes, size_t i, uint64_t word) {
    for (uint32_t k = move.to; k < move.to + move.tos; k++) {
      const uint32_t step = sendStep(k);
      storeLine64(lineAt(ends_.sends[k], step, i), word, flagOf(step));
    }
    if (move.target != nullptr) storeWord(move.target, i, bytes, word);
  }

  // One contribution at most, as it is.
  __device__ __forceinline__ void pass(const Move& move, size_t bytes, Patience& patience) {
    for (size_t i = threadIdx.x; i * 8 < bytes; i += blockDim.x) {
      uint64_t word = move.own != nullptr ? loadWord(move.own, i, bytes) : 0;
      if (move.froms > 0) {
        const uint32_t step = receiveStep(move.from);
        const uint4* const at = lineAt(ends_.receives[move.from], step, i);
        uint4 line = loadLine64(at);
        while ((line.y != flagOf(step) || line.w != flagOf(step)) && !patience.over()) line = loadLine64(at);
        word = uint64_t(line.z) << 32 | line.x;
      }
      put(move, bytes, i, word);
    }
  }

  __device__ __forceinline__ void fold(const Move& move, size_t bytes, uint32_t contributions, Patience& patience) {
    for (size_t i = threadIdx.x; i * 8 < bytes; i += blockDim.x) {
      Folding folding;
      const uint64_t mine = move.own != nullptr ? loadWord(move.own, i, bytes) : 0;
      for (uint32_t first = 0; first < contributions; first += kTogether) {
        uint4 lines[kTogether];
        receive(move, first, contributions, i, lines, patience);
#pragma unroll
        for (uint32_t k = 0; k < kTogether; k++) {
          if (first + k >= contributions) break;
          const bool isOwn = isOwnAt(move, first + k);
          const uint64_t word = isOwn ? mine : uint64_t(lines[k].z) << 32 | lines[k].x;
          folding.take(fold_, word, isOwn, first + k == 0);
        }
      }
      put(move, bytes, i, folding.result(fold_, divides(move)));
    }
  }

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

template <class AllKinds>
class Lines128 : public Lines<AllKinds, 2, kLine128StepBytes, kLine128Payload> {
  using Base = Lines<AllKinds, 2, kLine128StepBytes, kLine128Payload>;
  using Base::awaitCredits;
  using Base::connectionAt;
  using Base::contributionsOf;
  using Base::divides;
  using Base::ends_;
  using Base::flagOf;
  using Base::fold_;
  using Base::handOn;
  using Base::isOwnAt;
  using Base::kRenewal;
  using Base::launch_;
  using Base::loadWord;
  using Base::receiveStep;
  using Base::sendStep;
  using Base::slotAt;
  using Base::storeWord;
  using typename Base::Folding;

  static constexpr uint32_t kWords = 15;  // of a line
  static constexpr uint32_t kAll = ~0u;

 public:
  using Base::Base;

  __device__ __forceinline__ void move(const Move& move) {
    awaitCredits(move);
    Patience patience(launch_, ends_);
    const size_t bytes = move.empty ? 8 : move.count * launch_.elementBytes;
    const size_t lines = (bytes + kWords * 8 - 1) / (kWords * 8);
    const uint32_t contributions = contributionsOf(move);
    if (contributions <= 1 && !fold_.scales(move.own != nullptr)) {
      pass(move, bytes, lines, patience);
    } else if constexpr (AllKinds::kReduces) {
      if (contributions == 2) {
        fold<2, 2>(move, bytes, lines, patience);
      } else {
        fold<4, 1>(move, bytes, lines, patience);
      }
    }
    renew(move, lines);
    handOn(move, launch_.elementBytes);
  }

 private:
  static __device__ __forceinline__ uint64_t* partAt(const End& end, uint32_t step, size_t line) {
    return reinterpret_cast<uint64_t*>(slotAt(end, step)) + line * 16 + threadIdx.x % 8 * 2;
  }

  // Where a lane stands: two words of a line, of which the last part has one, and the flag.
  struct Part {
    size_t line, word;
    bool here, hasA, hasB;
    __device__ __forceinline__ Part(size_t group, size_t bytes, size_t lines) {
      line = group * 4 + threadIdx.x % 32 / 8;
      word = line * kWords + threadIdx.x % 8 * 2;
      here = line < lines;
      hasA = here && word * 8 < bytes;
      hasB = threadIdx.x % 8 < 7 && hasA && (word + 1) * 8 < bytes;
    }
  };
  static __device__ __forceinline__ bool hasFlag() { return threadIdx.x % 8 == 7; }

  // To all sends and the target.
  __device__ __forceinline__ void put(const Move& move, size_t bytes, const Part& part, uint64_t a, uint64_t b) {
    for (uint32_t k = move.to; k < move.to + move.tos; k++) {
      const uint32_t step = sendStep(k);
      __syncwarp();
      if (part.here) storeLine128(partAt(ends_.sends[k], step, part.line), a, hasFlag() ? flagOf(step) : b);
    }
    if (move.target == nullptr) return;
    if (part.hasA) storeWord(move.target, part.word, bytes, a);
    if (part.hasB) storeWord(move.target, part.word + 1, bytes, b);
  }

  // One contribution at most, as it is: four lines of each lane are under way at once.
  __device__ __forceinline__ void pass(const Move& move, size_t bytes, size_t lines, Patience& patience) {
    constexpr uint32_t kUnroll = 4;
    const uint32_t warps = blockDim.x / 32;
    for (size_t group = threadIdx.x / 32; group * 4 < lines; group += warps * kUnroll) {
      uint64_t a[kUnroll], b[kUnroll];
      if (move.own != nullptr) {
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) {
          const Part part(group + u * warps, bytes, lines);
          a[u] = part.hasA ? loadWord(move.own, part.word, bytes) : 0;
          b[u] = part.hasB ? loadWord(move.own, part.word + 1, bytes) : 0;
        }
      } else if (move.froms > 0) {
        const uint32_t step = receiveStep(move.from);
        const End& end = ends_.receives[move.from];
        for (;;) {
          bool missing = false;
#pragma unroll
          for (uint32_t u = 0; u < kUnroll; u++) {
            const Part part(group + u * warps, bytes, lines);
            if (part.here) loadLine128(partAt(end, step, part.line), a[u], b[u]);
            missing = missing || (part.here && hasFlag() && b[u] != flagOf(step));
          }
          if (!__any_sync(kAll, missing) || __any_sync(kAll, patience.over())) break;
        }
      } else {
#pragma unroll
        for (uint32_t u = 0; u < kUnroll; u++) a[u] = b[u] = 0;
      }
#pragma unroll
      for (uint32_t u = 0; u < kUnroll; u++) {
        put(move, bytes, Part(group + u * warps, bytes, lines), a[u], b[u]);
      }
    }
  }

  // kTogether contributions are looked at together, of kUnroll lines of each lane.
  template <uint32_t kTogether, uint32_t kUnroll>
  __device__ __forceinline__ void fold(const Move& move, size_t bytes, size_t lines, Patience& patience) {
    const uint32_t contributions = contributionsOf(move);
    const uint32_t warps = blockDim.x / 32;
    for (size_t group = threadIdx.x / 32; group * 4 < lines; group += warps * kUnroll) {
      Folding foldingA[kUnroll], foldingB[kUnroll];
      for (uint32_t first = 0; first < contributions; first += kTogether) {
        uint64_t a[kTogether][kUnroll], b[kTogether][kUnroll];
        for (;;) {
          bool missing = false;
#pragma unroll
          for (uint32_t k = 0; k < kTogether; k++) {
            if (first + k >= contributions) break;
            const bool isOwn = isOwnAt(move, first + k);
            const uint32_t end = connectionAt(move, first + k);
            const uint32_t step = isOwn ? 0 : receiveStep(end);
#pragma unroll
            for (uint32_t u = 0; u < kUnroll; u++) {
              const Part part(group + u * warps, bytes, lines);
              if (isOwn) {
                a[k][u] = part.hasA ? loadWord(move.own, part.word, bytes) : 0;
                b[k][u] = part.hasB ? loadWord(move.own, part.word + 1, bytes) : 0;
              } else {
                if (part.here) loadLine128(partAt(ends_.receives[end], step, part.line), a[k][u], b[k][u]);
                missing = missing || (part.here && hasFlag() && b[k][u] != flagOf(step));
              }
            }
          }
          if (!__any_sync(kAll, missing) || __any_sync(kAll, patience.over())) break;
        }
#pragma unroll
        for (uint32_t k = 0; k < kTogether; k++) {
          if (first + k >= contributions) break;
          const bool isOwn = isOwnAt(move, first + k);
#pragma unroll
          for (uint32_t u = 0; u < kUnroll; u++) {
            foldingA[u].take(fold_, a[k][u], isOwn, first + k == 0);
            foldingB[u].take(fold_, b[k][u], isOwn, first + k == 0);
          }
        }
      }
#pragma unroll
      for (uint32_t u = 0; u < kUnroll; u++) {
        put(move, bytes, Part(group + u * warps, bytes, lines), foldingA[u].result(fold_, divides(move)),
            foldingB[u].result(fold_, divides(move)));
      }
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
