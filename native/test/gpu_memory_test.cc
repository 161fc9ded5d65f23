// What lies where in the memory of GPUs, as far as it is decided without one.
#include <algorithm>
#include <random>
#include <vector>

#include "communicator/gpu_location.h"
#include "cuda/cuda_memory_use.h"
#include "cuda/ring_positions.h"
#include "expect.h"
#include "support/plan_builder.h"

using namespace ncclrun;
using namespace ncclrun::cuda;

namespace {

constexpr Slots kSlots{.channels = 2,
                       .wideChannels = 1,
                       .pairSteps = 4,
                       .wideStepBytes = 1024,
                       .narrowStepBytes = 256,
                       .lineSteps = 4,
                       .llStepBytes = 128,
                       .ll128StepBytes = 256,
                       .ringSteps = 4,
                       .ringStepBytes = 2048,
                       .headerBytes = 0};

void communicators() {
  const GpuLocation first(3), other(4);
  EXPECT(first.before() == 0 && other.before() == 0);
  {
    const GpuLocation second(3);
    EXPECT(second.before() == 1);
    GpuLocation third;
    third = GpuLocation(3);
    EXPECT(third.before() == 2 && GpuLocation(std::move(third)).before() == 2);
  }
  EXPECT(GpuLocation(3).before() == 1 && GpuLocation().before() == 0);
}

void sizes() {
  // Counters, lines, then slots of protocol Simple.
  EXPECT(slotOffset(1, kSlots) == 512 && slotOffset(2, kSlots) == 1024 && slotOffset(0, kSlots) == 2048);
  EXPECT(regionOffset(kSlots, 1) == 2048 + 4096 && regionOffset(kSlots, 2) == 2 * 2048 + 4096 + 1024);
  EXPECT(pairBytes(kSlots) == 12288 && ringBytes(kSlots, 2) == 0 && ringBytes(kSlots, 3) == 20480);
  const MemoryUse two = memoryUse(kSlots, 2, 2), three = memoryUse(kSlots, 3, 3);
  EXPECT(two.rings == 0 && two.pairs() + two.counters == 12288);
  EXPECT(three.rings == 2 * 4 * 2048 && three.simple == 2 * two.simple && three.pairs() == 2 * two.pairs());
  EXPECT(three.total() == 2 * 12288 + 20480 + TableLayout(kSlots, 3).bytes);
  const auto sentence = sentenceOf({32 << 20, 4 << 20, 12 << 20, 13 << 20, 0, 1 << 20}, 1);
  EXPECT(
      sentence ==
      "memory of GPU 1: 62.0 MiB: rings 32.0, pairs 29.0 (LL 4.0, LL128 12.0, Simple 13.0), counters 0.0, tables 1.0");
}

// Memory of rank `owner`, as everybody sees it: its GPU's, or its part of the host's.
char* memoryOf(uint32_t owner, bool onHost, uint64_t offset) {
  return reinterpret_cast<char*>((uint64_t(owner) + 1) << 40 | uint64_t(onHost) << 39 | offset);
}

// Neighbours mean the same memory by what one writes and the other reads, whoever reaches whom.
void neighbours(uint32_t ranks, uint32_t seed) {
  std::mt19937 random(seed);
  test::PlanSpec spec = test::oneHost(ranks, test::variant(plan::Algorithm::ring, 1, 4096));
  spec.rings.assign(kSlots.channels, {});
  for (auto& ring : spec.rings) {
    for (uint32_t rank = 0; rank < ranks; rank++) ring.push_back(rank);
    std::shuffle(ring.begin(), ring.end(), random);
  }
  const auto blob = test::encode(spec, 0);
  PlanView plan;
  EXPECT(plan.open(blob).ok());
  std::vector<std::vector<bool>> onHost(ranks, std::vector<bool>(ranks));
  for (uint32_t one = 0; one < ranks; one++) {
    for (uint32_t other = 0; other < one; other++) onHost[one][other] = onHost[other][one] = random() % 2 != 0;
  }
  std::vector<std::vector<RingPosition>> places;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    std::vector<PeerRegions> byPeer;
    for (uint32_t peer = 0; peer < ranks; peer++) {
      const bool host = onHost[rank][peer];
      const auto pair = [&](uint32_t owner, uint32_t writer) {
        return memoryOf(owner, host, (writer + 1) * pairBytes(kSlots));
      };
      byPeer.push_back(
          {{pair(rank, peer), pair(peer, rank), 0}, {memoryOf(rank, host, 0), memoryOf(peer, host, 0), 0}});
    }
    places.push_back(ringPositions(plan, kSlots, rank, byPeer));
  }
  for (uint32_t channel = 0; channel < kSlots.channels; channel++) {
    for (uint32_t rank = 0; rank < ranks; rank++) {
      const RingPosition& own = places[rank][channel];
      const RingPosition& next = places[own.next][channel];
      EXPECT(next.previous == rank && next.index == (own.index + 1) % ranks && spec.rings[channel][own.index] == rank);
      EXPECT(own.toNext.out == next.fromPrevious.in && own.toNext.in == next.fromPrevious.out);
      EXPECT(own.steps == next.steps && own.stepBytes == next.stepBytes && own.slots == next.slots);
      EXPECT(own.state < TableLayout(kSlots, ranks).states);
      const uint64_t region = reinterpret_cast<uint64_t>(own.fromPrevious.in) & ((1ull << 39) - 1);
      const uint64_t end = region + own.slots + uint64_t(own.steps) * own.stepBytes;
      if (ranks > 2) {
        EXPECT(own.stepBytes == kSlots.ringStepBytes && own.state >= kSlots.channels * ranks);
        EXPECT(region == channel * ringRegionBytes(kSlots) && end <= ringBytes(kSlots, ranks));
      } else {
        EXPECT(own.stepBytes == pairStepBytes(kSlots, channel) && own.state == channel * ranks + own.next);
        EXPECT(end == (own.previous + 1) * pairBytes(kSlots) + regionOffset(kSlots, channel + 1));
      }
    }
  }
}

}  // namespace

int main() {
  communicators();
  sizes();
  for (const uint32_t ranks : {2u, 3u, 4u, 8u, 16u}) {
    for (uint32_t seed = 0; seed < 10; seed++) neighbours(ranks, seed);
  }
  return 0;
}
