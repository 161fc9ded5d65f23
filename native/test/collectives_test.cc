// The ring variants of the other collectives, the barriers, and grouped sends and receives.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "support/check.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;
using plan::Algorithm;
using plan::Collective;

namespace {

Operation collectiveOf(Collective collective, const void* send, void* receive, size_t count, uint32_t root = 0) {
  Operation operation;
  operation.collective = collective;
  operation.send = send;
  operation.receive = receive;
  operation.count = count;
  operation.type = ncclInt32;
  operation.peer = root;
  return operation;
}

PlanSpec rings(uint32_t ranks) {
  PlanSpec spec = oneHost(ranks, variant(Algorithm::ring, 2, 3000));
  std::vector<uint32_t> forward(ranks), odd(ranks);
  for (uint32_t i = 0; i < ranks; i++) forward[i] = i, odd[i] = (ranks - i) % ranks;
  spec.rings = {forward, odd};
  return spec;
}

int value(uint32_t rank, size_t i) { return int(rank * 1000 + i % 997); }

// All-gather, reduce-scatter, broadcast and reduce by the variants of `plan`.
void checkCollectives(const PlanSpec& plan) {
  const auto ranks = uint32_t(plan.hostOf.size());
  World world(plan);
  world.run([&](Rank& me) {
    const uint32_t rank = me.number();
    for (size_t count : {size_t(0), size_t(1), size_t(333), size_t(4001)}) {
      std::vector<int> mine(count + 1), all(count * ranks + 1, -1);
      for (size_t i = 0; i < count; i++) mine[i] = value(rank, i);
      EXPECT(me.run({collectiveOf(Collective::allGather, mine.data(), all.data(), count)}) == ncclSuccess);
      bool right = true;
      for (size_t i = 0; i < count * ranks; i++) right &= all[i] == value(uint32_t(i / count), i % count);
      EXPECT(right && all[count * ranks] == -1);

      // In place: the own part lies where it belongs already.
      std::vector<int> inPlace(count * ranks + 1, 0);
      for (size_t i = 0; i < count; i++) inPlace[rank * count + i] = value(rank, i);
      EXPECT(me.run({collectiveOf(Collective::allGather, inPlace.data() + rank * count, inPlace.data(), count)}) ==
             ncclSuccess);
      EXPECT(std::equal(inPlace.begin(), inPlace.end() - 1, all.begin()));

      // Every rank contributes all[] plus its number, so the sums are known.
      std::vector<int> given(count * ranks + 1), reduced(count + 1, -1);
      for (size_t i = 0; i < count * ranks; i++) given[i] = all[i] + int(rank);
      const int extra = int(ranks * (ranks - 1) / 2);
      EXPECT(me.run({collectiveOf(Collective::reduceScatter, given.data(), reduced.data(), count)}) == ncclSuccess);
      right = true;
      for (size_t i = 0; i < count; i++) right &= reduced[i] == int(ranks) * value(rank, i) + extra;
      EXPECT(right && reduced[count] == -1);
      EXPECT(me.run({collectiveOf(Collective::reduceScatter, given.data(), given.data() + rank * count, count)}) ==
             ncclSuccess);
      EXPECT(std::equal(reduced.begin(), reduced.end() - 1, given.begin() + long(rank * count)));

      for (uint32_t root = 0; root < ranks; root++) {
        std::vector<int> out(count + 1, -1);
        EXPECT(me.run({collectiveOf(Collective::broadcast, mine.data(), out.data(), count, root)}) == ncclSuccess);
        right = true;
        for (size_t i = 0; i < count; i++) right &= out[i] == value(root, i);
        EXPECT(right && out[count] == -1);
        std::fill(out.begin(), out.end(), -1);
        EXPECT(me.run({collectiveOf(Collective::reduce, mine.data(), rank == root ? out.data() : nullptr, count,
                                    root)}) == ncclSuccess);
        for (size_t i = 0; i < count && rank == root; i++) right &= out[i] == int(ranks) * int(i % 997) + 1000 * extra;
        EXPECT(right && out[count] == -1);
      }
    }
  });
}

}  // namespace

TEST(ring_collectives_are_exact) {
  for (uint32_t ranks : {1u, 2u, 3u, 5u}) checkCollectives(rings(ranks));
}

TEST(direct_variants_of_ring_collectives_are_exact) {
  for (uint32_t ranks : {1u, 2u, 3u, 5u}) checkCollectives(oneHost(ranks, variant(Algorithm::directOneShot, 1, 3000)));
}

TEST(tree_collectives_are_exact) {
  for (uint32_t ranks : {1u, 2u, 3u, 5u, 11u}) {
    for (uint32_t hosts : {1u, 3u}) {
      PlanSpec plan = oneHost(ranks, variant(Algorithm::tree, 1, 3000));
      for (uint32_t rank = 0; rank < ranks; rank++) plan.hostOf[rank] = rank % std::min(hosts, ranks);
      checkCollectives(plan);
    }
  }
}

// Ranks of a host together, or dealt to the hosts in turn. Two slots: nothing is waited for later than it was sent.
TEST(rail_collectives_are_exact) {
  for (const auto& hostOf : {std::vector<uint32_t>{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1, 1, 1}, {2, 1, 0, 0, 1, 2}}) {
    for (const uint32_t steps : {2u, 4u}) {
      PlanSpec plan = oneHost(uint32_t(hostOf.size()), variant(Algorithm::rail, 1, 3000));
      plan.hostOf = hostOf;
      plan.pairSteps = steps;
      checkCollectives(plan);
    }
  }
}

TEST(direct_collectives_are_exact) {
  for (uint32_t ranks : {1u, 2u, 3u, 5u}) {
    World world(oneHost(ranks, variant(Algorithm::directOneShot, 1, 3000)));
    world.run([&](Rank& me) {
      const uint32_t rank = me.number();
      for (size_t count : {size_t(0), size_t(1), size_t(333), size_t(4001)}) {
        // Element i of the part that goes from one rank to another.
        const auto element = [](uint32_t from, uint32_t to, size_t i) { return value(from * 8 + to, i); };
        std::vector<int> given(count * ranks + 1), got(count * ranks + 1, -1);
        for (size_t i = 0; i < count * ranks; i++) given[i] = element(rank, uint32_t(i / count), i % count);
        const auto rightParts = [&](const std::vector<int>& parts) {
          for (size_t i = 0; i < count * ranks; i++) {
            if (parts[i] != element(uint32_t(i / count), rank, i % count)) return false;
          }
          return true;
        };
        EXPECT(me.run({collectiveOf(Collective::allToAll, given.data(), got.data(), count)}) == ncclSuccess);
        EXPECT(rightParts(got) && got[count * ranks] == -1);
        std::vector<int> inPlace = given;
        EXPECT(me.run({collectiveOf(Collective::allToAll, inPlace.data(), inPlace.data(), count)}) == ncclSuccess);
        EXPECT(rightParts(inPlace));

        for (uint32_t root = 0; root < ranks; root++) {
          // My part for the root, which has all of them afterwards.
          std::fill(got.begin(), got.end(), -1);
          int* const all = rank == root ? got.data() : nullptr;
          EXPECT(me.run({collectiveOf(Collective::gather, &given[root * count], all, count, root)}) == ncclSuccess);
          EXPECT(rank != root ? got[0] == -1 : rightParts(got) && got[count * ranks] == -1);

          std::vector<int> mine(count + 1, -1);
          const int* const parts = rank == root ? given.data() : nullptr;
          EXPECT(me.run({collectiveOf(Collective::scatter, parts, mine.data(), count, root)}) == ncclSuccess);
          bool right = mine[count] == -1;
          for (size_t i = 0; i < count; i++) right &= mine[i] == element(root, rank, i);
          EXPECT(right);
        }
      }
    });
  }
}

TEST(no_rank_leaves_a_barrier_before_all_have_entered_it) {
  for (const auto& how : {variant(Algorithm::directOneShot, 1, 1000), variant(Algorithm::ring, 1, 1000)}) {
    World world(oneHost(5, how));
    std::atomic<uint32_t> arrived{0};
    world.run([&](Rank& me) {
      for (uint32_t round = 1; round <= 50; round++) {
        arrived++;
        EXPECT((round % 2 == 0 ? me.barrier() : me.path().nodeBarrier().code) == ncclSuccess);
        EXPECT(arrived >= round * 5);
        EXPECT(me.path().nodeBarrier().code == ncclSuccess);
      }
    });
  }
}

TEST(a_grouped_exchange_may_exceed_all_buffers) {
  for (uint32_t hosts : {1u, 2u}) {
    PlanSpec spec = oneHost(4, variant(Algorithm::directOneShot, 1, 4096));
    for (uint32_t rank = 0; rank < 4; rank++) spec.hostOf[rank] = rank % hosts;
    World world(spec);
    world.run([&](Rank& me) {
      constexpr size_t kBytes = 700001;  // a pair connection holds 4 × 4096
      const uint32_t rank = me.number();
      std::vector<std::vector<char>> out(4, std::vector<char>(kBytes)), in(4, std::vector<char>(kBytes));
      std::vector<Operation> group;
      for (uint32_t peer = 0; peer < 4; peer++) {
        for (size_t i = 0; i < kBytes; i++) out[peer][i] = char(i * 31 + rank * 7 + peer);
        group.push_back(sendOf(out[peer].data(), kBytes, peer));
      }
      for (uint32_t peer = 0; peer < 4; peer++) group.push_back(receiveOf(in[peer].data(), kBytes, peer));
      EXPECT(me.run(group) == ncclSuccess);
      for (uint32_t peer = 0; peer < 4; peer++) {
        bool right = true;
        for (size_t i = 0; i < kBytes; i++) right &= in[peer][i] == char(i * 31 + peer * 7 + rank);
        EXPECT(right);
      }
    });
  }
}

TEST(several_messages_to_one_peer_keep_their_order) {
  World world(oneHost(2, variant(Algorithm::directOneShot, 1, 4096)));
  world.run([](Rank& me) {
    std::vector<int> out(300), in(300, -1);
    for (size_t i = 0; i < out.size(); i++) out[i] = int(i) + int(me.number()) * 1000;
    const uint32_t peer = 1 - me.number();
    std::vector<Operation> group;
    for (size_t i = 0; i < 100; i++) {
      group.push_back(sendOf(&out[i * 3], 3, peer, ncclInt32));
      group.push_back(receiveOf(&in[i * 3], 3, peer, ncclInt32));
    }
    EXPECT(me.run(group) == ncclSuccess);
    for (size_t i = 0; i < in.size(); i++) EXPECT(in[i] == int(i) + int(peer) * 1000);
  });
}

TEST(a_group_may_mix_collectives_and_messages) {
  World world(oneHost(3, variant(Algorithm::directTwoShot, 1, 4096)));
  world.run([](Rank& me) {
    std::vector<float> a(5000, 1.f), b(100, 2.f), c(100);
    const uint32_t next = (me.number() + 1) % 3, previous = (me.number() + 2) % 3;
    EXPECT(me.run({allReduceOf(a.data(), a.data(), a.size()), sendOf(b.data(), 100, next, ncclFloat32),
                   receiveOf(c.data(), 100, previous, ncclFloat32), allReduceOf(a.data(), a.data(), a.size())}) ==
           ncclSuccess);
    EXPECT(a[4999] == 9 && c[99] == 2);
  });
}

TEST(the_error_reports_a_size_that_differs) {
  World world(oneHost(2, variant(Algorithm::directOneShot, 1, 4096)));
  world.run([&](Rank& me) {
    float data[64] = {};
    const ncclResult_t result = me.allReduce(data, data, me.number() == 0 ? 32 : 64);
    EXPECT(result == ncclInvalidUsage);
    EXPECT_MORE(std::string(lastError()).find("differ") != std::string::npos, lastError());
  });
}

TEST(two_streams_of_one_communicator_keep_the_order_of_calls) {
  World world(oneHost(2, variant(Algorithm::directOneShot, 1, 4096)));
  world.run([](Rank& me) {
    ncclrunStream_t second;
    EXPECT(ncclrunStreamCreate(&second) == ncclSuccess);
    float data = 1;
    for (int i = 0; i < 40; i++) {
      const Operation operation = allReduceOf(&data, &data, 1);
      EXPECT(me.path().enqueue({&operation, 1}, i % 3 == 0 ? second : me.stream(), nullptr).code == ncclSuccess);
      if (i % 20 == 19)
        EXPECT(me.synchronize() == ncclSuccess && ncclrunStreamSynchronize(second) == ncclSuccess &&
               data == float(1 << 20)),
            data = 1;
    }
    EXPECT(ncclrunStreamDestroy(second) == ncclSuccess);
  });
}

TEST_MAIN
