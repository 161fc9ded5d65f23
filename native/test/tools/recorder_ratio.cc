// What the flight recorder costs all-reduces of two ranks on the host device: of each size, how long operations take
// with it divided by how long they take without, over 31 pairs of rounds in turns.
// Prints for each size: bytes, the mean ratio, and its 95 % interval.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "support/check.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;

namespace {

constexpr int kPairs = 31;
constexpr double kStudent = 2.042;  // 97.5 % point for 30 degrees of freedom
constexpr size_t kSizes[] = {8, 4096, 65536, 1 << 20};
constexpr size_t kBytesOfRound = 32 << 20;

size_t operationsOf(size_t bytes) { return std::clamp<size_t>(kBytesOfRound / bytes, 20, 2000); }

struct Both {
  std::unique_ptr<Rank> with, without;
};

double secondsOf(Rank& rank, std::vector<float>& data, size_t bytes) {
  const uint64_t began = nowNanoseconds();
  for (size_t i = 0; i < operationsOf(bytes); i++)
    EXPECT(rank.allReduce(data.data(), data.data(), bytes / sizeof(float)) == ncclSuccess);
  return double(nowNanoseconds() - began) / 1e9;
}

// Of one rank. `ratios`: of the pairs.
void measure(Both& both, size_t bytes, std::vector<double>& ratios) {
  std::vector<float> data(bytes / sizeof(float));
  for (int pair = -1; pair < kPairs; pair++) {
    const bool isFirst = pair % 2 == 0;  // each comes first as often as the other
    const double first = secondsOf(isFirst ? *both.with : *both.without, data, bytes);
    const double second = secondsOf(isFirst ? *both.without : *both.with, data, bytes);
    if (pair >= 0) ratios.push_back(isFirst ? first / second : second / first);
  }
}

void print(size_t bytes, const std::vector<double>& ratios) {
  double sum = 0, squares = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  const double mean = sum / kPairs;
  for (const double ratio : ratios) squares += std::pow(std::log(ratio) - mean, 2);
  const double half = kStudent * std::sqrt(squares / (kPairs - 1) / kPairs);
  std::printf("%zu %.4f %.4f %.4f\n", bytes, std::exp(mean), std::exp(mean - half), std::exp(mean + half));
}

}  // namespace

int main() {
  World recorded(oneHost(2, variant(plan::Algorithm::ring, 1, 65536)));
  World plain(oneHost(2, variant(plan::Algorithm::ring, 1, 65536)));
  std::vector<double> ratios[std::size(kSizes)];
  const auto body = [&](uint32_t rank) {
    Both both{recorded.join(rank, true), plain.join(rank, false)};
    EXPECT(both.with->connect() == ncclSuccess && both.without->connect() == ncclSuccess);
    for (size_t i = 0; i < std::size(kSizes); i++) {
      std::vector<double> own;
      measure(both, kSizes[i], rank == 0 ? ratios[i] : own);
    }
  };
  std::thread other(body, 1);
  body(0);
  other.join();
  for (size_t i = 0; i < std::size(kSizes); i++) print(kSizes[i], ratios[i]);
  return failures() == 0 ? 0 : 1;
}
