// Tests whether lines of 128 bytes arrive whole from each peer, which protocol LL128 requires.
#pragma once
#include "cuda/kernels/connections.cuh"

namespace ncclrun::cuda {

// The value of word `word` of line `line` from rank `from` to rank `to`: the words of all lines differ.
__device__ __forceinline__ uint64_t probeWord(uint32_t from, uint32_t to, uint32_t line, uint32_t word) {
  return (uint64_t(from) << 56 | uint64_t(to) << 48 | uint64_t(line) << 16 | word) * 0x9e3779b97f4a7c15;
}

// Fills the LL128 slots of channel 0 in every peer's memory, a line at a time, and checks the lines that arrive from
// them. Block p serves peer p. Counts the words that did not arrive with their line's flag, and stores the GPU's clock
// at the end. `wrong` null: only the clock, by one block.
__device__ __forceinline__ void probe(const Launch& launch, uint32_t* wrong, uint64_t* clock) {
  NCCLRUN_SHARED(Connections, connections);
  if (wrong == nullptr) {
    if (threadIdx.x == 0) storeVolatile(clock, nanoseconds());
    return;
  }
  const uint32_t peer = blockIdx.x;
  if (peer == launch.rank) return;
  if (threadIdx.x == 0) connections.aborted = connections.reported = false;
  __syncthreads();
  const uint32_t lines = launch.slots.lineSteps * launch.slots.ll128StepBytes / 128;
  constexpr uint64_t kFlag = 0x70726f62ull << 32;  // never a step's
  const uint32_t slots = slotOffset(2, launch.slots);
  const uint32_t part = threadIdx.x % 8;
  const auto at = [&](char* region, uint32_t line) {
    return reinterpret_cast<uint64_t*>(region + slots) + line * 16 + part * 2;
  };
  for (uint32_t line = threadIdx.x / 8; line < lines; line += blockDim.x / 8) {
    const auto word = [&](uint32_t i) { return probeWord(launch.rank, peer, line, i); };
    __syncwarp();
    storeLL128Line(at(launch.out[peer], line), word(part * 2), part == 7 ? kFlag : word(part * 2 + 1));
  }
  SpinWait spin(launch, connections);
  for (uint32_t line = threadIdx.x / 8; line < lines; line += blockDim.x / 8) {
    const auto word = [&](uint32_t i) { return probeWord(peer, launch.rank, line, i); };
    uint64_t a = 0, b = 0;
    do {
      __syncwarp();
      loadLL128Line(at(launch.in[peer], line), a, b);
    } while (__any_sync(~0u, part == 7 && b != kFlag) && !__any_sync(~0u, spin.gaveUp()));
    if (a != word(part * 2) || (part < 7 && b != word(part * 2 + 1))) atomicAdd_system(wrong, 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) storeVolatile(clock, nanoseconds());
}

}  // namespace ncclrun::cuda
