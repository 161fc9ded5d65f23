#include "cuda/cuda_memory_use.h"

#include "base/error.h"

namespace ncclrun::cuda {

TableLayout::TableLayout(const Slots& slots, uint32_t ranks)
    : states(slots.channels * ranks + (hasRingsApart(ranks) ? slots.channels : 0)),
      sends(0),
      receives(states * sizeof(SendState)),
      ringPositions(receives + states * sizeof(ReceiveState)),
      rings(ringPositions + slots.channels * sizeof(RingPosition)),
      byHost(rings + uint64_t(slots.channels) * ranks * sizeof(uint32_t)),
      recorded(byHost + ranks * sizeof(uint32_t)),
      bytes(recorded + recordedCounts(ranks) * sizeof(uint32_t)) {}

MemoryUse memoryUse(const Slots& slots, uint32_t ranks, uint32_t localRanks) {
  const uint64_t peers = localRanks - 1;
  const uint64_t regions = peers * slots.channels;
  const uint64_t lines = regions * slots.lineSteps;
  const uint64_t wide = uint64_t(slots.wideChannels) * slots.wideStepBytes;
  const uint64_t narrow = uint64_t(slots.channels - slots.wideChannels) * slots.narrowStepBytes;
  MemoryUse use{
      .rings = hasRingsApart(ranks) ? uint64_t(slots.channels) * slots.ringSteps * slots.ringStepBytes : 0,
      .ll = lines * slots.llStepBytes,
      .ll128 = lines * slots.ll128StepBytes,
      .simple = peers * slots.pairSteps * (wide + narrow),
      .counters = 0,
      .tables = TableLayout(slots, ranks).bytes,
  };
  use.counters = peers * pairBytes(slots) + ringBytes(slots, ranks) - use.rings - use.pairs();
  return use;
}

std::string sentenceOf(const MemoryUse& use, int gpu) {
  const auto mebibytes = [](uint64_t bytes) { return double(bytes) / (1 << 20); };
  return formatSentence(
      "memory of GPU %d: %.1f MiB: rings %.1f, pairs %.1f (LL %.1f, LL128 %.1f, Simple %.1f), counters %.1f, "
      "tables %.1f",
      gpu, mebibytes(use.total()), mebibytes(use.rings), mebibytes(use.pairs()), mebibytes(use.ll),
      mebibytes(use.ll128), mebibytes(use.simple), mebibytes(use.counters), mebibytes(use.tables));
}

}  // namespace ncclrun::cuda
