// How work is cut: blocks and their steps have every element once, no step is more than a slot holds, and no block has
// much more than another.
#include "algorithm/work.h"

#include <algorithm>
#include <vector>

#include "support/check.h"

using namespace ncclrun;

namespace {

struct Cuts {
  static constexpr bool kSingleStep = false;
  size_t slot;
  size_t slotElements() const { return slot; }
};

// LL128 with 512 threads: grain and slot are multiples of each other.
constexpr size_t kGrain = 7680, kSlot = 12 * kGrain;

Work workOf(size_t count, uint32_t blocks) {
  Work w{};
  w.count = count;
  w.blocks = blocks;
  w.chunk = 136 * 3840;
  w.grain = kGrain;
  w.step = stepOf(w, kSlot, 1);
  return w;
}

// Of each block, how many elements each of its steps has; every element is in one of them.
std::vector<std::vector<size_t>> stepsOf(Work w, bool& all) {
  std::vector<std::vector<size_t>> steps(w.blocks);
  std::vector<std::pair<size_t, size_t>> found;
  for (w.block = 0; w.block < w.blocks; w.block++) {
    forEachStep(Cuts{kSlot}, w, [&](size_t begin, size_t count) {
      steps[w.block].push_back(count);
      found.emplace_back(begin, count);
    });
  }
  std::sort(found.begin(), found.end());
  size_t end = 0;
  all = true;
  for (const auto& [begin, count] : found) {
    all = all && begin == end && count > 0;
    end = begin + count;
  }
  all = all && end == w.count;
  return steps;
}

}  // namespace

TEST(steps_cover_all_bytes_and_fit_a_slot) {
  for (const uint32_t blocks : {1u, 2u, 7u, 48u, 64u}) {
    for (size_t count = 1; count < size_t(64) << 20; count = count * 5 / 3 + 1) {
      bool all = false;
      const auto steps = stepsOf(workOf(count, blocks), all);
      EXPECT(all);
      size_t min = SIZE_MAX, max = 0;
      for (const auto& own : steps) {
        min = std::min(min, own.size());
        max = std::max(max, own.size());
        for (const size_t one : own) EXPECT(one <= kSlot);
      }
      EXPECT(max - min <= 1);
      // No more than full slots would take.
      const size_t share = (count + blocks - 1) / blocks;
      EXPECT(max <= (share + kSlot - 1) / kSlot);
    }
  }
}

// 8 MiB by 64 blocks are 92 slots: full ones would give 28 blocks two and the others one.
TEST(almost_all_blocks_have_equally_many_steps) {
  bool all = false;
  int full = 0;
  for (const auto& own : stepsOf(workOf(size_t(8) << 20, 64), all)) full += own.size() == 2 ? 1 : 0;
  EXPECT(all);
  EXPECT(full >= 56);
}

// Of an all_reduce of 16 MiB by two ranks: no piece that is much smaller than its neighbour.
TEST(the_pieces_of_a_chunk_have_equal_sizes) {
  Work w = workOf(size_t(16) << 20, 64);
  std::vector<size_t> spans;
  forEachRound(Cuts{kSlot}, w, 2, [&](size_t, size_t span, size_t) { spans.push_back(span); });
  EXPECT(spans.size() == 2);
  EXPECT(spans.front() == spans.back());
}

TEST_MAIN
