// What the flight recorder adds to an operation: all-reduces of 8 bytes between two ranks, with the recorder and
// without, in turns. Prints nanoseconds per operation: with, without, and the median of the differences.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/clock.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;

namespace {

constexpr int kRounds = 201;
constexpr int kOperations = 2000;

double nanoseconds(Rank& rank) {
  double value = 1;
  const uint64_t begin = nowNanoseconds();
  for (int i = 0; i < kOperations; i++) rank.allReduce(&value, &value, 1, ncclFloat64, ncclMax);
  return double(nowNanoseconds() - begin) / kOperations;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + long(values.size()) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

int main() {
  const auto spec = oneHost(2, variant(plan::Algorithm::directOneShot, 1, 4096));
  World plain(spec), recorded(spec);
  std::vector<double> ours, bare, differences;
  recorded.run([&](Rank& with) {
    const auto without = plain.join(with.number(), false);
    EXPECT(without->connect() == ncclSuccess);
    for (int round = 0; round < kRounds; round++) {
      const bool isFirst = round % 2 == 0;  // each comes first as often as the other
      const double first = nanoseconds(isFirst ? with : *without);
      const double second = nanoseconds(isFirst ? *without : with);
      if (with.number() != 0) continue;
      ours.push_back(isFirst ? first : second);
      bare.push_back(isFirst ? second : first);
      differences.push_back(ours.back() - bare.back());
    }
  });
  std::printf("%.1f %.1f %.1f\n", median(ours), median(bare), median(differences));
  return failures() == 0 ? 0 : 1;
}
