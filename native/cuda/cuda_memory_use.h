// A communicator's use of GPU memory, by purpose, computed from the plan alone; the twin of control/plan/gpu-memory.ts.
#pragma once
#include <cstdint>
#include <string>

#include "plan/launch_format.h"

namespace ncclrun::cuda {

// Offsets, in bytes, in the memory for everything that the kernels need beside the regions.
struct TableLayout {
  TableLayout(const Slots& slots, uint32_t ranks);

  uint32_t states;  // per direction: of pairs by channel and peer, then of the rings by channel
  uint64_t sends;
  uint64_t receives;
  uint64_t ringPositions;
  uint64_t rings;
  uint64_t byHost;
  uint64_t recorded;  // as RecorderAccess::counts
  uint64_t bytes;
};

// Bytes. Slots by protocol; `counters`: the headers before the slots, and the rest of the last pages.
struct MemoryUse {
  uint64_t rings;
  uint64_t ll;
  uint64_t ll128;
  uint64_t simple;
  uint64_t counters;
  uint64_t tables;

  uint64_t pairs() const { return ll + ll128 + simple; }
  uint64_t total() const { return rings + pairs() + counters + tables; }
};
// localRanks: slots between hosts are memory of the host.
MemoryUse memoryUse(const Slots& slots, uint32_t ranks, uint32_t localRanks);

// "memory of GPU 0: 61.0 MiB: rings 32.0, …".
std::string sentenceOf(const MemoryUse& use, int gpu);

}  // namespace ncclrun::cuda
