// Lines of protocol LL in memory of the host, which kernels write or read (cuda/kernels/memory.cuh): 16 bytes each, two
// words of which the lower half is data and the upper half the flag. Every word arrives whole.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ncclrun {

inline constexpr uint32_t kLineBytes = 16, kLineDataBytes = 8;

inline constexpr uint32_t linesOf(uint32_t bytes) { return (bytes + kLineDataBytes - 1) / kLineDataBytes; }

// Copies the data of `bytes` to `to` as far as the lines bear the flag, from line `done` on. Returns the number of
// lines that are copied so far.
inline uint32_t packLines(const std::byte* lines, uint32_t flag, uint32_t bytes, uint32_t done, std::byte* to) {
  const uint32_t all = linesOf(bytes);
  for (; done < all; done++) {
    auto* const words = reinterpret_cast<uint64_t*>(const_cast<std::byte*>(lines) + size_t(done) * kLineBytes);
    const uint64_t low = std::atomic_ref(words[0]).load(std::memory_order_relaxed);
    const uint64_t high = std::atomic_ref(words[1]).load(std::memory_order_relaxed);
    if (uint32_t(low >> 32) != flag || uint32_t(high >> 32) != flag) return done;
    const uint64_t data = high << 32 | uint32_t(low);
    const uint32_t at = done * kLineDataBytes;
    std::memcpy(to + at, &data, std::min(bytes - at, kLineDataBytes));
  }
  return done;
}

// Stores `bytes` as lines with the flag, and lines without data behind them up to `count` lines.
inline void expandLines(const std::byte* from, uint32_t bytes, uint32_t flag, uint32_t count, std::byte* lines) {
  const uint64_t flags = uint64_t(flag) << 32;
  count = std::max(count, linesOf(bytes));
  for (uint32_t line = 0; line < count; line++) {
    uint64_t data = 0;
    const uint32_t at = line * kLineDataBytes;
    if (at < bytes) std::memcpy(&data, from + at, std::min(bytes - at, kLineDataBytes));
    auto* const words = reinterpret_cast<uint64_t*>(lines + size_t(line) * kLineBytes);
    std::atomic_ref(words[0]).store(flags | uint32_t(data), std::memory_order_relaxed);
    std::atomic_ref(words[1]).store(flags | data >> 32, std::memory_order_relaxed);
  }
}

}  // namespace ncclrun
