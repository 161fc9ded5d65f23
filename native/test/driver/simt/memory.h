// Twins of what cuda/kernels/memory.cuh says by instructions of the GPU: the same orders, and delays on both sides of
// what others may see.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

#include "simt/cuda.h"

#define NCCLRUN_PARAMETER(Type) const Type&
#define NCCLRUN_SHARED(Type, name) Type& name = ::simt::sharedAs<Type>()
#define NCCLRUN_DYNAMIC_SHARED(Type, name) NCCLRUN_SHARED(Type, name)

namespace ncclrun::cuda {

inline constexpr uint32_t kPollsPerHostPoll = 64;  // rounds take long here

inline void maybeDelay() { simt::delay(); }
inline void yieldToOtherThreads() { simt::standAside(); }
inline void barrierSync(uint32_t barrier, uint32_t threads) { simt::barrierSync(barrier, threads); }
inline void barrierArrive(uint32_t barrier, uint32_t threads) { simt::barrierArrive(barrier, threads); }

template <class T>
T loadAs(const T* from, std::memory_order order) {
  simt::delay();
  return std::atomic_ref(*const_cast<T*>(from)).load(order);
}
template <class T>
void storeAs(T* to, T value, std::memory_order order) {
  simt::delay();
  std::atomic_ref(*to).store(value, order);
  simt::delay();
}

inline uint32_t loadAcquire(const uint32_t* from) { return loadAs(from, std::memory_order_acquire); }
inline void storeRelease(uint32_t* to, uint32_t value) { storeAs(to, value, std::memory_order_release); }
inline void storeRelease(uint64_t* to, uint64_t value) { storeAs(to, value, std::memory_order_release); }
inline void storeCredit(uint32_t* to, uint32_t value) { storeRelease(to, value); }
inline void addRelease(uint32_t* to, uint32_t value) {
  simt::delay();
  std::atomic_ref(*to).fetch_add(value, std::memory_order_release);
}
inline uint32_t loadVolatile(const uint32_t* from) { return loadAs(from, std::memory_order_relaxed); }
inline void storeVolatile(uint32_t* to, uint32_t value) { storeAs(to, value, std::memory_order_relaxed); }
inline void storeVolatile(uint64_t* to, uint64_t value) { storeAs(to, value, std::memory_order_relaxed); }
inline void storeVolatile(uint64_t* to, uint64_t first, uint64_t second) {
  storeAs(to, first, std::memory_order_relaxed);
  storeAs(to + 1, second, std::memory_order_relaxed);
}
template <class Counter>
Counter increment(Counter* counter) {
  simt::delay();
  return std::atomic_ref(*counter).fetch_add(1, std::memory_order_relaxed);
}

// The two halves of a line, each of which is all that arrives whole, in any order.
inline uint4 loadLLLine(const uint4* from) {
  const auto* const halves = reinterpret_cast<const uint64_t*>(from);
  uint64_t loaded[2];
  const uint32_t one = simt::chance(2);
  loaded[one] = loadAs(halves + one, std::memory_order_relaxed);
  loaded[1 - one] = loadAs(halves + 1 - one, std::memory_order_relaxed);
  return {uint32_t(loaded[0]), uint32_t(loaded[0] >> 32), uint32_t(loaded[1]), uint32_t(loaded[1] >> 32)};
}
inline void storeLLLine(uint4* to, uint64_t data, uint32_t flag) {
  auto* const halves = reinterpret_cast<uint64_t*>(to);
  const uint64_t flags = uint64_t(flag) << 32;
  const uint64_t stored[2] = {flags | uint32_t(data), flags | data >> 32};
  const uint32_t one = simt::chance(2);
  storeAs(halves + one, stored[one], std::memory_order_relaxed);
  storeAs(halves + 1 - one, stored[1 - one], std::memory_order_relaxed);
}

inline void loadLL128Line(const uint64_t* from, uint64_t& a, uint64_t& b) { simt::loadLine(from, a, b); }
inline void storeLL128Line(uint64_t* to, uint64_t a, uint64_t b) { simt::storeLine(to, a, b); }

inline uint64_t nanoseconds() {
  return uint64_t(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

}  // namespace ncclrun::cuda
