// The primitives of algorithm/work.h on a GPU: all threads of a block call each of them together. Thread 0 watches the
// flags.
#pragma once
#include "algorithm/work.h"
#include "device/cuda/connection.cuh"
#include "device/cuda/fold.cuh"

namespace ncclrun::cuda {

inline constexpr uint32_t kMaxPeers = 8;  // connections of a block in one direction

template <class T, class Op>
class Primitives {
 public:
  // `abort` is raised (not 0) by the host: then every wait ends. The block's endpoints lie in this GPU's memory.
  __device__ Primitives(Endpoint* receives, uint32_t receiveCount, Endpoint* sends, uint32_t sendCount,
                        const uint32_t* abort, const Adjustment<T>& adjust = {})
      : receives_(receives),
        sends_(sends),
        receiveCount_(receiveCount),
        sendCount_(sendCount),
        abort_(abort),
        adjust_(adjust) {
    size_t bytes = ~size_t(0);
    for (uint32_t i = 0; i < receiveCount; i++) bytes = lesser(bytes, receives[i].stepBytes);
    for (uint32_t i = 0; i < sendCount; i++) bytes = lesser(bytes, sends[i].stepBytes);
    slotElements_ = bytes / sizeof(T);
  }

  __device__ size_t slotElements() const { return slotElements_; }

  __device__ __noinline__ void copyAll(const void* source, void* target, size_t count, uint32_t block,
                                       uint32_t blocks) {
    if (source == target && !Op::kScales) return;
    const size_t part = (count + blocks - 1) / blocks / Pack<T>::kCount * Pack<T>::kCount + Pack<T>::kCount;
    const size_t begin = lesser(count, block * part);
    const T* from[1] = {static_cast<const T*>(source) + begin};
    T* to[1] = {static_cast<T*>(target) + begin};
    Adjustment<T> adjust = adjust_;
    adjust.scaled = 0;
    fold<T, Op>(to, 1, from, 1, lesser(part, count - begin), adjust);
  }
  __device__ __noinline__ void copy(const void* source, void* target, size_t count) {
    if (source == target) return;
    const T* from[1] = {static_cast<const T*>(source)};
    T* to[1] = {static_cast<T*>(target)};
    fold<T, Op>(to, 1, from, 1, count);
  }
  __device__ void send(uint32_t to, const void* source, size_t count) { move(0, 0, to, 1, source, 0, nullptr, count); }
  __device__ void copySend(const void* source, void* target, uint32_t to, size_t count) {
    move(0, 0, to, 1, source, 0, target == source ? nullptr : target, count);
  }
  __device__ void receive(uint32_t from, void* target, size_t count) { move(from, 1, 0, 0, nullptr, 0, target, count); }
  __device__ void receiveSend(uint32_t from, uint32_t to, void* target, size_t count) {
    move(from, 1, to, 1, nullptr, 0, target, count);
  }
  __device__ void receiveReduceSend(uint32_t from, const void* own, uint32_t to, size_t count) {
    move(from, 1, to, 1, own, 1, nullptr, count);
  }
  __device__ void receiveReduceCopy(uint32_t from, const void* own, void* target, size_t count) {
    move(from, 1, 0, 0, own, 1, target, count);
  }
  __device__ void receiveReduceCopySend(uint32_t from, const void* own, void* target, uint32_t to, size_t count) {
    move(from, 1, to, 1, own, 1, target, count);
  }
  __device__ void reduceAll(const void* own, uint32_t place, void* target, bool forward, size_t count) {
    move(0, receiveCount_, 0, forward ? sendCount_ : 0, own, place, target, count);
  }
  __device__ void merge(uint32_t from, uint32_t froms, const void* own, void* target, uint32_t to, uint32_t tos,
                        size_t count) {
    move(from, froms, to, tos, own, froms, target, count);
  }
  __device__ void signal(uint32_t to) { move(0, 0, to, 1, nullptr, 0, nullptr, 0, true); }
  __device__ void await(uint32_t from) { move(from, 1, 0, 0, nullptr, 0, nullptr, 0, true); }

 private:
  // True once `flag` has reached `value`; false if aborted. The host's word is far away: it is read once in a while
  // only.
  __device__ bool waitFor(const uint64_t* flag, uint64_t value) {
    if (loadAcquire(flag) >= value) return true;
    uint64_t look = nanoseconds() + kAbortLookNanoseconds;
    while (loadAcquire(flag) < value) {
      if (nanoseconds() < look) continue;
      if (loadVolatile(abort_) != 0) return false;
      look = nanoseconds() + kAbortLookNanoseconds;
    }
    return true;
  }

  // As the host's: waits for the slots of receives_[from, +froms) and sends_[to, +tos), folds, hands on. empty: a step
  // without payload. Not inlined: an algorithm has many steps, and the code of one is long.
  __device__ __noinline__ void move(uint32_t from, uint32_t froms, uint32_t to, uint32_t tos, const void* own,
                                    uint32_t place, void* target, size_t count, bool empty = false) {
    if (ended_ || (count == 0 && !empty)) return;
    bool fine = true;
    if (threadIdx.x == 0) {
      for (uint32_t i = from; fine && i < from + froms; i++) fine = waitFor(receives_[i].tail, receives_[i].step + 1);
      for (uint32_t i = to; fine && i < to + tos; i++) {
        fine = waitFor(sends_[i].head, sends_[i].step + 1 < sends_[i].steps ? 0 : sends_[i].step + 1 - sends_[i].steps);
      }
    }
    if (__syncthreads_or(!fine)) {
      ended_ = true;
      return;
    }
    const T* sources[kMaxPeers + 1];
    T* targets[kMaxPeers + 1];
    uint32_t sourceCount = 0, targetCount = 0;
    Adjustment<T> adjust = adjust_;
    if (own != nullptr) adjust.scaled = place;
    if (own == nullptr || froms == 0 || target == nullptr) adjust.divisor = 1;
    for (uint32_t i = from; i < from + froms; i++) {
      if (own != nullptr && sourceCount == place) sources[sourceCount++] = static_cast<const T*>(own);
      sources[sourceCount++] = slotOf(receives_[i]);
    }
    if (own != nullptr && sourceCount == froms) sources[sourceCount++] = static_cast<const T*>(own);
    for (uint32_t i = to; i < to + tos; i++) targets[targetCount++] = slotOf(sends_[i]);
    if (target != nullptr) targets[targetCount++] = static_cast<T*>(target);
    if (count > 0) fold<T, Op>(targets, targetCount, sources, sourceCount, count, adjust);
    // All threads' accesses happen before thread 0's releases.
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence_system();
    for (uint32_t i = to; i < to + tos; i++) {
      sends_[i].bytes += count * sizeof(T);
      storeRelease(sends_[i].tail, ++sends_[i].step);
    }
    for (uint32_t i = from; i < from + froms; i++) {
      receives_[i].bytes += count * sizeof(T);
      storeRelease(receives_[i].head, ++receives_[i].step);
    }
  }

  static __device__ T* slotOf(const Endpoint& end) {
    return reinterpret_cast<T*>(end.slots + (end.step % end.steps) * end.stepBytes);
  }

  static constexpr uint64_t kAbortLookNanoseconds = 100000;
  Endpoint* const receives_;
  Endpoint* const sends_;
  const uint32_t receiveCount_, sendCount_;
  const uint32_t* const abort_;
  const Adjustment<T> adjust_;
  size_t slotElements_;
  bool ended_ = false;
};

}  // namespace ncclrun::cuda
