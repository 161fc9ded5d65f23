// All-reduce: every type, operator, size, algorithm, number of ranks, in place and out of place, against a plain
// computation.
#include <cstring>
#include <random>

#include "base/element.h"
#include "datapath/reduce.h"
#include "support/check.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;
using plan::Algorithm;

namespace {

struct Type {
  ncclDataType_t type;
  const char* name;
};
constexpr Type kTypes[] = {{ncclInt8, "int8"},        {ncclUint8, "uint8"},     {ncclInt32, "int32"},
                           {ncclUint32, "uint32"},    {ncclInt64, "int64"},     {ncclUint64, "uint64"},
                           {ncclFloat16, "float16"},  {ncclFloat32, "float32"}, {ncclFloat64, "float64"},
                           {ncclBfloat16, "bfloat16"}};

// Small whole numbers: sums, products and conversions of every type are exact in any order.
int valueOf(uint32_t rank, size_t i, ncclRedOp_t op) {
  return op == ncclProd ? 1 + int((i + rank) % 2) : int((i * 7 + rank * 3) % 6);
}

void put(ncclDataType_t type, void* data, size_t i, int value) {
  const auto f = float(value);
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      static_cast<uint8_t*>(data)[i] = uint8_t(value);
      break;
    case ncclInt32:
    case ncclUint32:
      static_cast<uint32_t*>(data)[i] = uint32_t(value);
      break;
    case ncclInt64:
    case ncclUint64:
      static_cast<uint64_t*>(data)[i] = uint64_t(value);
      break;
    case ncclFloat16: {
      const _Float16 h = _Float16(f);
      memcpy(static_cast<uint16_t*>(data) + i, &h, 2);
      break;
    }
    case ncclFloat32:
      static_cast<float*>(data)[i] = f;
      break;
    case ncclFloat64:
      static_cast<double*>(data)[i] = value;
      break;
    default:
      static_cast<uint16_t*>(data)[i] = uint16_t(bits >> 16);
  }
}

int combine(int a, int b, ncclRedOp_t op) {
  return op == ncclSum || op == ncclAvg ? a + b
         : op == ncclProd               ? a * b
         : op == ncclMax                ? std::max(a, b)
                                        : std::min(a, b);
}

std::vector<char> inputOf(uint32_t rank, size_t count, ncclDataType_t type, ncclRedOp_t op) {
  std::vector<char> data(count * elementBytes(type) + 1);
  for (size_t i = 0; i < count; i++) put(type, data.data(), i, valueOf(rank, i, op));
  return data;
}

std::vector<char> expectedOf(uint32_t ranks, size_t count, ncclDataType_t type, ncclRedOp_t op) {
  std::vector<char> data(count * elementBytes(type) + 1);
  for (size_t i = 0; i < count; i++) {
    int value = valueOf(0, i, op);
    for (uint32_t rank = 1; rank < ranks; rank++) value = combine(value, valueOf(rank, i, op), op);
    put(type, data.data(), i, op == ncclAvg ? value / int(ranks) : value);
  }
  return data;
}

void checkAll(Rank& me, uint32_t ranks, const std::vector<size_t>& counts) {
  for (const auto& [type, name] : kTypes) {
    for (ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin}) {
      for (size_t count : counts) {
        const size_t bytes = count * elementBytes(type);
        const auto input = inputOf(me.number(), count, type, op);
        const auto expected = expectedOf(ranks, count, type, op);
        std::vector<char> out(bytes + 1, 99);
        const auto what = [&](const char* how) {
          return std::string(name) + " op " + std::to_string(op) + " count " + std::to_string(count) + how + ": " +
                 lastError();
        };
        EXPECT_MORE(me.allReduce(input.data(), out.data(), count, type, op) == ncclSuccess, what(" out of place"));
        EXPECT_MORE(memcmp(out.data(), expected.data(), bytes) == 0, what(" out of place"));
        EXPECT(out[bytes] == 99);
        std::vector<char> both = input;
        EXPECT_MORE(me.allReduce(both.data(), both.data(), count, type, op) == ncclSuccess, what(" in place"));
        EXPECT_MORE(memcmp(both.data(), expected.data(), bytes) == 0, what(" in place"));
      }
    }
  }
}

void exact(const plan::VariantRecord& variant, uint32_t channels) {
  for (uint32_t ranks : {1u, 2u, 3u, 5u}) {
    PlanSpec spec = oneHost(ranks, variant);
    for (uint32_t channel = 0; channel < channels; channel++) {
      std::vector<uint32_t> ring;
      for (uint32_t i = 0; i < ranks; i++)
        ring.push_back(channel % 2 == 0 ? (i + channel) % ranks : (ranks - i) % ranks);
      spec.rings.push_back(ring);
    }
    World world(spec);
    world.run([&](Rank& me) { checkAll(me, ranks, {0, 1, 3, 257, 5003}); });
  }
}

}  // namespace

TEST(direct_one_shot_gives_exact_sums) { exact(variant(Algorithm::directOneShot, 1, 4096), 1); }
TEST(direct_two_shot_gives_exact_sums) { exact(variant(Algorithm::directTwoShot, 1, 1000), 1); }
TEST(the_tree_gives_exact_sums) { exact(variant(Algorithm::tree, 1, 1000), 1); }
TEST(a_ring_of_one_channel_gives_exact_sums) { exact(variant(Algorithm::ring, 1, 8192), 1); }
TEST(a_ring_of_three_channels_gives_exact_sums) { exact(variant(Algorithm::ring, 3, 777, 96), 3); }

namespace {

// Values whose sums and products depend on the order.
std::vector<char> randomInput(uint32_t rank, size_t count, ncclDataType_t type) {
  std::mt19937 random(rank);
  std::uniform_real_distribution<double> value(-3, 3);
  std::vector<char> data(count * elementBytes(type));
  for (size_t i = 0; i < count; i++) {
    const double wide = value(random);
    const auto single = float(wide);
    const auto half = _Float16(single);
    const auto eight = uint8_t(random() & 0xb7u);  // no exponent of all ones: no NaN
    const void* from = &eight;
    if (type == ncclFloat64) from = &wide;
    if (type == ncclFloat32) from = &single;
    if (type == ncclFloat16) from = &half;
    if (type == ncclBfloat16) from = reinterpret_cast<const char*>(&single) + 2;
    memcpy(&data[i * elementBytes(type)], from, elementBytes(type));
  }
  return data;
}

void sameBits(const PlanSpec& spec, ncclDataType_t type, ncclRedOp_t op) {
  constexpr size_t kCount = 4007;
  const auto ranks = uint32_t(spec.hostOf.size());
  World world(spec);
  std::vector<std::vector<char>> out(ranks, std::vector<char>(kCount * elementBytes(type)));
  world.run([&](Rank& me) {
    auto& mine = out[me.number()];
    const auto input = randomInput(me.number(), kCount, type);
    std::vector<char> again(mine.size());
    EXPECT(me.allReduce(input.data(), mine.data(), kCount, type, op) == ncclSuccess);
    for (int run = 0; run < 3; run++) {
      EXPECT(me.allReduce(input.data(), again.data(), kCount, type, op) == ncclSuccess);
      EXPECT_MORE(again == mine, std::to_string(int(type)));
    }
  });
  for (uint32_t rank = 1; rank < ranks; rank++) EXPECT_MORE(out[rank] == out[0], std::to_string(int(type)));
}

}  // namespace

TEST(rails_give_exact_sums) {
  for (const auto& hostOf : {std::vector<uint32_t>{0, 0, 1, 1}, {0, 1, 0, 1}, {2, 1, 0, 0, 1, 2}}) {
    for (const uint32_t steps : {2u, 4u}) {
      PlanSpec spec = oneHost(uint32_t(hostOf.size()), variant(Algorithm::rail, 1, 1000));
      spec.hostOf = hostOf;
      spec.pairSteps = steps;
      World world(spec);
      world.run([&](Rank& me) { checkAll(me, uint32_t(hostOf.size()), {0, 1, 3, 257, 5003}); });
    }
  }
}

TEST(all_ranks_and_runs_get_the_same_bits) {
  for (const auto& how :
       {variant(Algorithm::directOneShot, 1, 2048), variant(Algorithm::directTwoShot, 1, 512),
        variant(Algorithm::tree, 1, 512), variant(Algorithm::ring, 2, 1024), variant(Algorithm::rail, 1, 512)}) {
    for (const bool twoHosts : {false, true}) {
      if (!twoHosts && how.algorithm == uint8_t(Algorithm::rail)) continue;
      PlanSpec spec = oneHost(4, how);
      spec.rings = {{0, 1, 2, 3}, {2, 0, 3, 1}};
      if (twoHosts) spec.hostOf = {0, 1, 0, 1};
      for (const auto type : {ncclFloat16, ncclBfloat16, ncclFloat32, ncclFloat64, ncclFloat8e4m3, ncclFloat8e5m2}) {
        for (const auto op : {ncclSum, ncclProd, ncclAvg}) sameBits(spec, type, op);
      }
    }
  }
}

// Buffers that begin at any byte, and are so large that results go past the caches.
TEST(large_misaligned_buffers_give_exact_sums) {
  for (const auto& how : {variant(Algorithm::directTwoShot, 1, 65536), variant(Algorithm::ring, 2, 100000)}) {
    PlanSpec spec = oneHost(2, how);
    spec.rings = {{0, 1}, {1, 0}};
    spec.pairStepBytes = spec.ringStepBytes = 65536;
    World world(spec);
    world.run([&](Rank& me) {
      constexpr size_t kCount = (3 << 20) + 5;
      for (size_t skew : {size_t(0), size_t(1), size_t(4), size_t(36)}) {
        std::vector<char> input(kCount * 4 + 64), out(kCount * 4 + 64, 1);
        for (size_t i = 0; i < kCount; i++) {
          const float value = float(i % 1000) + float(me.number());
          memcpy(&input[skew + i * 4], &value, 4);
        }
        EXPECT(me.allReduce(&input[skew], &out[skew], kCount) == ncclSuccess);
        size_t wrong = 0;
        for (size_t i = 0; i < kCount; i++) {
          float value;
          memcpy(&value, &out[skew + i * 4], 4);
          wrong += value != 2 * float(i % 1000) + 1;
        }
        EXPECT(wrong == 0);
        EXPECT(out[skew + kCount * 4] == 1);
      }
    });
  }
}

TEST_MAIN
