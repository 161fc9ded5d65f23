// What the flight recorder adds to an operation: barriers of one rank, which wait for nobody, with the recorder and
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
  const uint64_t begin = nowNanoseconds();
  for (int i = 0; i < kOperations; i++) rank.barrier();
  return double(nowNanoseconds() - begin) / kOperations;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + long(values.size()) / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  World recorded(oneHost(1, variant(plan::Algorithm::ring, 1, 4096)));
  World plain(oneHost(1, variant(plan::Algorithm::ring, 1, 4096)));
  const auto with = recorded.join(0, true), without = plain.join(0, false);
  if (with->connect() != ncclSuccess || without->connect() != ncclSuccess) return 1;
  std::vector<double> ours, bare, differences;
  for (int round = 0; round < kRounds; round++) {
    // Each comes first as often as the other.
    const double first = nanoseconds(round % 2 == 0 ? *with : *without);
    const double second = nanoseconds(round % 2 == 0 ? *without : *with);
    ours.push_back(round % 2 == 0 ? first : second);
    bare.push_back(round % 2 == 0 ? second : first);
    differences.push_back(ours.back() - bare.back());
  }
  std::printf("%.1f %.1f %.1f\n", median(ours), median(bare), median(differences));
  return failures() == 0 ? 0 : 1;
}
