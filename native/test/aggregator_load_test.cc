// Many groups and reductions at one aggregator at once: right results, bounded memory, and no group that waits for
// another one.
#include <cstring>
#include <random>

#include "base/clock.h"
#include "base/element.h"
#include "base/limits.h"
#include "net/aggregator_job.h"
#include "net/contribution.h"

using namespace ncclrun::test;
using ncclrun::nowNanoseconds;
using ncclrun::aggregator::Aggregator;
using ncclrun::aggregator::kChunkBytes;
using ncclrun::aggregator::makeAggregatorNetwork;
using ncclrun::aggregator::ServerLimits;
using ncclrun::net::CollectiveGroup;
using ncclrun::net::CollectiveListener;
using ncclrun::net::CollectiveNetwork;
using ncclrun::net::Handle;
using ncclrun::net::Request;

namespace {

constexpr uint32_t kMembers = 4, kGroups = 64;
constexpr uint64_t kLong = 20'000'000'000;  // ns

// One reduction, the same on all members of its group.
struct Call {
  size_t count = 0;
  ncclDataType_t type = ncclInt32;
  ncclRedOp_t op = ncclSum;
};
Call callOf(uint32_t group, uint32_t number, uint32_t largestLog) {
  constexpr ncclDataType_t kTypes[] = {ncclInt8, ncclFloat16, ncclFloat32, ncclInt64, ncclBfloat16, ncclFloat64};
  constexpr ncclRedOp_t kOperators[] = {ncclSum, ncclMax, ncclMin, ncclAvg};
  std::mt19937 random(group * 1000 + number);
  const uint32_t below = 1u << (random() % (largestLog + 1));
  return {1 + random() % below, kTypes[random() % std::size(kTypes)], kOperators[random() % std::size(kOperators)]};
}

// A call under way.
struct Open {
  Call call;
  std::vector<char> from, to;
  Request* request = nullptr;
};

// One member's groups, all of which it drives in one thread.
struct Rank {
  uint32_t rank = 0;
  std::unique_ptr<CollectiveNetwork> network;
  std::vector<std::unique_ptr<CollectiveListener>> listeners;
  std::vector<std::unique_ptr<CollectiveGroup>> groups;

  void connect(const std::vector<std::vector<Handle>>& handles) {
    groups.resize(listeners.size());
    for (size_t left = groups.size(); left > 0;) {
      for (size_t i = 0; i < groups.size(); i++) {
        if (groups[i] != nullptr) continue;
        OK(listeners[i]->connect(handles[i], rank, groups[i]));
        left -= groups[i] != nullptr;
      }
      std::this_thread::yield();
    }
  }
  void begin(uint32_t group, const Call& call, Open& open) {
    open.call = call;
    open.from.resize(call.count * ncclrun::elementBytes(call.type));
    open.to.assign(open.from.size(), 0);
    fillContribution(call.type, open.from.data(), rank, call.count);
    OK(groups[group]->iallreduce({open.from.data(), {}}, {open.to.data(), {}}, call.count, {call.type, call.op},
                                 open.request));
    EXPECT(open.request != nullptr);
  }
  // Tests what is under way in all groups until all of it is complete and right.
  void complete(std::vector<std::vector<Open>>& open) {
    for (bool any = true; any;) {
      any = false;
      for (uint32_t group = 0; group < open.size(); group++) {
        for (Open& each : open[group]) {
          if (each.request == nullptr) continue;
          bool done = false;
          OK(groups[group]->test(each.request, done));
          any = true;
          if (!done) break;
          each.request = nullptr;
          EXPECT(each.to == serial(each.call.type, kMembers, each.call.count, each.call.op));
        }
      }
      std::this_thread::yield();
    }
  }
};

struct Load {
  std::unique_ptr<Aggregator> server;
  std::vector<Rank> ranks{kMembers};
  std::vector<std::vector<Handle>> handles;

  explicit Load(uint32_t groups, const ServerLimits& limits = {}) : handles(groups, std::vector<Handle>(kMembers)) {
    ncclrun::prepareOpenFiles(3 * groups * kMembers);
    OK(Aggregator::make({.address = "127.0.0.1", .token = kJobToken, .limits = limits}, server));
    for (uint32_t rank = 0; rank < kMembers; rank++) {
      ranks[rank].rank = rank;
      OK(makeAggregatorNetwork({.servers = {server->handle()}, .token = kJobToken, .address = "127.0.0.1"},
                               ranks[rank].network));
      ranks[rank].listeners.resize(groups);
      for (uint32_t group = 0; group < groups; group++)
        OK(ranks[rank].network->listen(0, handles[group][rank], ranks[rank].listeners[group]));
    }
  }
  void each(const std::function<void(Rank&)>& body) {
    std::vector<std::thread> threads;
    for (Rank& rank : ranks) threads.emplace_back([&] { body(rank); });
    for (std::thread& thread : threads) thread.join();
  }
  // Waits until the aggregator has nothing left.
  void expectEmpty() {
    for (Rank& rank : ranks) rank.groups.clear();
    const uint64_t until = nowNanoseconds() + kLong;
    while (nowNanoseconds() < until) {
      const auto figures = server->figures();
      if (figures.members == 0 && figures.groups == 0 && figures.chunkBytes == 0) return;
      std::this_thread::yield();
    }
    failTest(__FILE__, __LINE__, "the aggregator keeps members, groups or chunks");
  }
};

// 512 reductions are under way at every member.
void sixtyFourGroupsOfRandomReductions() {
  Load load(kGroups);
  load.each([&](Rank& rank) {
    rank.connect(load.handles);
    std::vector<std::vector<Open>> open(kGroups, std::vector<Open>(8));
    for (uint32_t round = 0; round < 3; round++) {
      for (uint32_t group = 0; group < kGroups; group++) {
        for (uint32_t i = 0; i < 8; i++) rank.begin(group, callOf(group, round * 8 + i, 15), open[group][i]);
      }
      rank.complete(open);
    }
  });
  load.expectEmpty();
}

// Three members of 8 groups contribute 8 chunks each while the fourth one is late: more than the limit.
void memoryIsBounded() {
  constexpr size_t kLimit = 4 << 20;
  constexpr uint32_t kFew = 8;
  Load load(kFew, {.memoryBytes = kLimit});
  std::atomic<uint32_t> waiting{0};
  load.each([&](Rank& rank) {
    rank.connect(load.handles);
    std::vector<std::vector<Open>> open(kFew, std::vector<Open>(1));
    const auto begin = [&](uint32_t group) {
      rank.begin(group, {kChunkBytes / 4 * 12 + 5, ncclFloat32, ncclSum}, open[group][0]);
    };
    if (rank.rank != 3) {
      for (uint32_t group = 0; group < kFew; group++) begin(group);
      waiting++;
    } else {
      // The aggregator has taken as much as it may.
      const uint64_t until = nowNanoseconds() + kLong;
      while ((waiting < 3 || load.server->figures().chunkBytes < kLimit) && nowNanoseconds() < until)
        std::this_thread::yield();
      EXPECT(load.server->figures().chunkBytes >= kLimit);
      for (uint32_t group = kFew; group-- > 0;) begin(group);
    }
    rank.complete(open);
  });
  // Beside the limit, one chunk of each member of each group is taken, and results are on their way.
  constexpr size_t kBeside = size_t(kFew) * (kMembers + ncclrun::aggregator::kWindow) * kChunkBytes;
  EXPECT(load.server->figures().mostChunkBytes <= kLimit + kBeside);
  load.expectEmpty();
}

// Group 0 lacks a member and has filled the memory: others go on.
void aGroupThatWaitsHoldsUpNoOther() {
  Load load(2, {.memoryBytes = kChunkBytes});
  std::atomic<uint32_t> isDone{0};
  load.each([&](Rank& rank) {
    rank.connect(load.handles);
    std::vector<std::vector<Open>> open(2, std::vector<Open>(1));
    const auto begin = [&](uint32_t group) { rank.begin(group, {kChunkBytes * 3, ncclInt8, ncclSum}, open[group][0]); };
    if (rank.rank != 2) begin(0);
    for (int i = 0; i < 20; i++) {
      std::vector<std::vector<Open>> second(2, std::vector<Open>(1));
      rank.begin(1, {kChunkBytes * 2, ncclInt8, ncclMax}, second[1][0]);
      rank.complete(second);
    }
    isDone++;
    while (isDone < kMembers) std::this_thread::yield();
    if (rank.rank == 2) begin(0);
    rank.complete(open);
  });
  load.expectEmpty();
}

size_t residentBytes() {
  FILE* const file = std::fopen("/proc/self/statm", "r");
  EXPECT(file != nullptr);
  size_t pages = 0, resident = 0;
  EXPECT(std::fscanf(file, "%zu %zu", &pages, &resident) == 2);
  std::fclose(file);
  return resident * size_t(sysconf(_SC_PAGESIZE));
}

// Sanitizers keep records of what was freed.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr size_t kGrowth = 64 << 20;
#else
constexpr size_t kGrowth = 1 << 20;
#endif

void tenThousandReductionsWithoutGrowth() {
  AggregatorJob job(2);
  std::atomic<size_t> before{0}, after{0};
  job.members->connected([&](Member& member) {
    GroupMemory from(*member.group, 20'000), to(*member.group, 20'000);
    for (uint32_t i = 0; i < 10'000; i++) {
      if (i == 1000 && member.rank == 0) before = residentBytes();
      OK(member.await(post(member, from.buffer(), to.buffer(), 1 + i % 5000)));
    }
    if (member.rank == 0) after = residentBytes();
  });
  EXPECT(after < before + kGrowth);
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(sixtyFourGroupsOfRandomReductions);
  RUN(memoryIsBounded);
  RUN(aGroupThatWaitsHoldsUpNoOther);
  RUN(tenThousandReductionsWithoutGrowth);
  return isFine ? 0 : 1;
}
