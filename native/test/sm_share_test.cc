// What communicators of a GPU take of its SMs: as much as they want where they are alone, and never so much
// that another one could not have its own part.
#include "cuda/sm_share.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "expect.h"

using namespace ncclrun::cuda;

namespace {

constexpr uint32_t kMax = 64;  // that a plan asks for

Gpu gpuWith(uint32_t sms, Device device) { return {.context = nullptr, .device = device, .busId = 0, .sms = sms}; }

struct Communicator {
  explicit Communicator(const Gpu& gpu) : share(gpu, [this] { return ended; }) {}
  bool ended = true;
  uint32_t blocks = 0;  // of the launch under way
  SmShare share;

  uint32_t launch(uint32_t wanted, uint32_t least = 1) {
    blocks = std::max(ended ? 0 : blocks, share.take(wanted, least, false));
    ended = false;
    share.coverLaunches();
    return blocks;
  }
};

void aloneAndInPairs() {
  const Gpu gpu = gpuWith(132, 1);
  Communicator one(gpu);
  EXPECT(one.launch(kMax) == kMax);
  Communicator other(gpu);
  EXPECT(other.launch(kMax) == kMax);
  Communicator third(gpu);
  EXPECT(third.launch(kMax) == guaranteedBlocks(132, 3));
  EXPECT(third.launch(40, 39) == 39);  // it cannot do with less
  one.ended = other.ended = true;
  Communicator fourth(gpu);
  EXPECT(fourth.launch(kMax) > guaranteedBlocks(132, 4));
}

void capturesStay() {
  const Gpu gpu = gpuWith(132, 2);
  Communicator one(gpu), other(gpu), third(gpu);
  EXPECT(one.share.take(kMax, 1, true) == kMax);
  EXPECT(other.launch(kMax) < kMax);
  other.ended = true;
  EXPECT(one.share.take(kMax, 1, false) == kMax);
}

// A launch that nobody can ask for yet is not taken for an earlier one that has ended.
void heldUntilTold() {
  const Gpu gpu = gpuWith(132, 3);
  Communicator one(gpu), other(gpu), third(gpu);
  EXPECT(one.launch(kMax) == kMax);
  one.ended = true;
  EXPECT(one.share.take(kMax, 1, false) == kMax);
  EXPECT(other.launch(kMax) < kMax);
  other.ended = true;
  one.share.coverLaunches();
  EXPECT(other.launch(kMax) == kMax);
}

// Whoever launches how much, and when what ends: all that is under way has room beside each other.
void neverTooMuch() {
  std::minstd_rand random(7);
  Device device = 10;
  for (const uint32_t sms : {16u, 72u, 108u, 114u, 132u, 148u}) {
    for (const uint32_t count : {2u, 3u, 8u, 16u}) {
      const Gpu gpu = gpuWith(sms, device++);
      std::vector<std::unique_ptr<Communicator>> all;
      for (uint32_t i = 0; i < count; i++) all.push_back(std::make_unique<Communicator>(gpu));
      for (int iteration = 0; iteration < 2000; iteration++) {
        Communicator& next = *all[random() % count];
        const uint32_t wanted = 1 + random() % std::min(kMax, sms / 2);
        const uint32_t blocks = next.launch(wanted);
        EXPECT(blocks >= std::min(wanted, guaranteedBlocks(sms, count)));
        if (random() % 3 == 0) all[random() % count]->ended = true;
        uint32_t sum = 0;
        for (const auto& one : all) sum += one->ended ? 0 : one->blocks;
        EXPECT(sum <= sms);
      }
    }
  }
}

}  // namespace

int main() {
  aloneAndInPairs();
  capturesStay();
  heldUntilTold();
  neverTooMuch();
}
