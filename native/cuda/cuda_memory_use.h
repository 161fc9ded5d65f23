// What a communicator takes of a GPU's memory, by purpose: from the plan alone, as control/plan/gpu-memory.ts says it.
#pragma once
#include <cstdint>
#include <string>

#include "plan/launch_format.h"

namespace ncclrun::cuda {

// What the kernels need beside the regions lies in one piece of memory: offsets in bytes.
struct TableLayout {
  TableLayout(const Slots& slots, uint32_t ranks);

  uint32_t states;  // each way: of pairs by channel and peer, then of the rings by channel
  uint64_t sends;
  uint64_t receives;
  uint64_t places;
  uint64_t rings;
  uint64_t bytes;
};

// Bytes. Slots by protocol; `counters`: what lies before the slots, and what fills the last pages.
struct MemoryUse {
  uint64_t rings;
  uint64_t line64;
  uint64_t line128;
  uint64_t simple;
  uint64_t counters;
  uint64_t tables;

  uint64_t pairs() const { return line64 + line128 + simple; }
  uint64_t total() const { return rings + pairs() + counters + tables; }
};
MemoryUse memoryUse(const Slots& slots, uint32_t ranks);

// "memory of GPU 0: 61.0 MiB: rings 32.0, …".
std::string sentenceOf(const MemoryUse& use, int gpu);

}  // namespace ncclrun::cuda
