// The primitives of algorithm/work.h on a GPU: all threads of a block call each of them together.
#pragma once
#include "algorithm/work.h"
#include "cuda/kernels/ll.cuh"
#include "cuda/kernels/ll128.cuh"
#include "cuda/kernels/simple.cuh"

namespace ncclrun::cuda {

// Primitives over a protocol (Simple, LL or LL128). kInline: each step's code is inlined, which saves a call; for
// algorithms of few steps.
template <class Protocol, bool kInline>
class Primitives {
 public:
  static constexpr bool kSingleStep = Protocol::kSingleStep;
  static constexpr bool kHasCollnet = Protocol::kProtocol == 0;  // whole slots go to a network that reduces

  // `position`: further arguments of the protocol.
  __device__ Primitives(const Launch& launch, typename Protocol::Connections& connections, uint32_t receives,
                        uint32_t sends, const auto&... position)
      : protocol_(launch, connections, position...), launch_(launch), receives_(receives), sends_(sends) {}

  __device__ size_t slotElements() const { return protocol_.slotBytes() / launch_.elementBytes; }
  __device__ size_t slots() const { return protocol_.slots(); }

  __device__ void copyAll(const char* source, char* target, size_t count, uint32_t block, uint32_t blocks) {
    const bool scales = launch_.opIndex % kRedOps == uint8_t(RedOp::preMulSum);
    if (source == target && !scales) return;
    const size_t part = ((count + blocks - 1) / blocks + 15) / 16 * 16;
    const size_t begin = lesser(count, block * part);
    protocol_.copy(source + begin * launch_.elementBytes, target + begin * launch_.elementBytes,
                   lesser(part, count - begin) * launch_.elementBytes);
  }
  __device__ void copy(const void* source, void* target, size_t count) {
    if (source != target && count > 0) protocol_.copy(source, target, count * launch_.elementBytes);
  }
  __device__ __forceinline__ void send(uint32_t to, const void* source, size_t count) {
    move(0, 0, to, 1, source, 0, nullptr, count);
  }
  __device__ __forceinline__ void sendAll(const void* source, size_t count, uint32_t) {
    move(0, 0, 0, sends_, source, 0, nullptr, count);
  }
  __device__ __forceinline__ void sendAndCopy(uint32_t to, const void* source, const void* own, void* target,
                                              size_t count) {
    const Move move{0, 0, to, 1, source, 0, nullptr, count};
    if constexpr (!requires { protocol_.sendAndCopy(move, own, target); }) {
      send(to, source, count);
      if (target != nullptr) copy(own, target, count);
    } else if (count > 0) {
      protocol_.sendAndCopy(move, own, target);
    }
  }
  __device__ __forceinline__ void copySend(const void* source, void* target, uint32_t to, size_t count) {
    move(0, 0, to, 1, source, 0, target == source ? nullptr : target, count);
  }
  __device__ __forceinline__ void receive(uint32_t from, void* target, size_t count) {
    move(from, 1, 0, 0, nullptr, 0, target, count);
  }
  __device__ __forceinline__ void receiveSend(uint32_t from, uint32_t to, void* target, size_t count) {
    move(from, 1, to, 1, nullptr, 0, target, count);
  }
  __device__ __forceinline__ void receiveReduceSend(uint32_t from, const void* own, uint32_t to, size_t count) {
    move(from, 1, to, 1, own, 1, nullptr, count);
  }
  __device__ __forceinline__ void receiveReduceCopy(uint32_t from, const void* own, void* target, size_t count) {
    move(from, 1, 0, 0, own, 1, target, count);
  }
  __device__ __forceinline__ void receiveReduceCopySend(uint32_t from, const void* own, void* target, uint32_t to,
                                                        size_t count) {
    move(from, 1, to, 1, own, 1, target, count);
  }
  __device__ __forceinline__ void reduceAll(const void* own, uint32_t ownIndex, void* target, bool forward,
                                            size_t count) {
    move(0, receives_, 0, forward ? sends_ : 0, own, ownIndex, target, count);
  }
  __device__ __forceinline__ void merge(uint32_t from, uint32_t receiveCount, const void* own, void* target,
                                        uint32_t to, uint32_t sendCount, size_t count) {
    move(from, receiveCount, to, sendCount, own, receiveCount, target, count);
  }
  // target = reduction of all ranks' elements where they lie, in rank order; protocol Simple only.
  __device__ void pull(const Work& w) {
    if constexpr (requires { protocol_.pull(w); }) protocol_.pull(w);
  }
  __device__ void finishSends() { protocol_.finishSends(); }
  // After the last step.
  __device__ void finish() { protocol_.finish(); }

 private:
  __device__ __forceinline__ void move(uint32_t from, uint32_t receiveCount, uint32_t to, uint32_t sendCount,
                                       const void* own, uint32_t ownIndex, void* target, size_t count) {
    if (count > 0) execute({from, receiveCount, to, sendCount, own, ownIndex, target, count});
  }
  __device__ __forceinline__ void execute(const Move& move) {
    if constexpr (kInline) {
      protocol_.move(move);
    } else {
      executeOutOfLine(move);
    }
  }
  __device__ __noinline__ void executeOutOfLine(const Move& move) { protocol_.move(move); }

  Protocol protocol_;
  const Launch& launch_;
  const uint32_t receives_, sends_;
};

}  // namespace ncclrun::cuda
