// What the flight recorder adds to an operation, in nanoseconds: barriers of one rank, which wait for nobody, with the
// recorder and without, in turns, and the recorder's calls alone. A barrier moves no data, so that its end needs a
// reading of the clock of its own; other operations end with their last step, whose time is known.
// Prints: with, without, the median of the differences, and the calls alone as other operations make them.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/clock.h"
#include "base/stamp_clock.h"
#include "datapath/recorder.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;

namespace {

constexpr int kRounds = 401;
constexpr int kOperations = 1000;

double perOperation(auto&& operation) {
  const uint64_t begin = nowNanoseconds();
  for (int i = 0; i < kOperations; i++) operation();
  return double(nowNanoseconds() - begin) / kOperations;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + long(values.size()) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

int main() {
  World recorded(oneHost(1, variant(plan::Algorithm::ring, 1, 4096)));
  World plain(oneHost(1, variant(plan::Algorithm::ring, 1, 4096)));
  const auto with = recorded.join(0, true), without = plain.join(0, false);
  if (with->connect() != ncclSuccess || without->connect() != ncclSuccess) return 1;
  Recorder recorder(std::make_shared<RecorderClaim>(with->recorder.get(), uint16_t{0}), 1);
  const Operation operation = allReduceOf(nullptr, nullptr, 1);
  std::vector<double> ours, bare, differences, alone;
  for (int round = 0; round < kRounds; round++) {
    const bool isFirst = round % 2 == 0;  // each comes first as often as the other
    const double first = perOperation([&] { (isFirst ? with : without)->barrier(); });
    const double second = perOperation([&] { (isFirst ? without : with)->barrier(); });
    ours.push_back(isFirst ? first : second);
    bare.push_back(isFirst ? second : first);
    differences.push_back(ours.back() - bare.back());
    alone.push_back(perOperation([&] {
      const uint64_t now = stampNanoseconds();
      const uint64_t record = recorder.enqueued(operation, {}, 0, now);
      recorder.started(record, now);
      recorder.ended(record, now);
    }));
  }
  std::printf("%.1f %.1f %.1f %.1f\n", median(ours), median(bare), median(differences), median(alone));
  return failures() == 0 ? 0 : 1;
}
