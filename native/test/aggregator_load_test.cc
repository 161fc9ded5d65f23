// Many groups and reductions at one aggregator, or at a tree of them, at once: right results, bounded memory, and no
// group that waits for another one.
#include <cstring>
#include <random>

#include "base/clock.h"
#include "base/element.h"
#include "base/limits.h"
#include "net/aggregator_job.h"
#include "net/contribution.h"

using namespace ncclrun::test;
using ncclrun::nowNanoseconds;
using ncclrun::aggregator::kChunkBytes;
using ncclrun::aggregator::makeAggregatorNetwork;
using ncclrun::aggregator::Server;
using ncclrun::aggregator::ServerLimits;
using ncclrun::net::CollectiveGroup;
using ncclrun::net::CollectiveListener;
using ncclrun::net::CollectiveNetwork;
using ncclrun::net::Handle;
using ncclrun::net::Request;

namespace {

constexpr uint32_t kMembers = 4, kGroups = 64, kFanIn = 2;
constexpr uint64_t kLong = 20'000'000'000;  // ns

// One reduction, the same on all members of its group.
struct Call {
  size_t count = 0;
  ncclDataType_t type = ncclInt32;
  ncclRedOp_t op = ncclSum;
};
Call callOf(uint32_t group, uint32_t number, uint32_t largestLog, bool isExact) {
  constexpr ncclDataType_t kTypes[] = {ncclInt8, ncclFloat16, ncclFloat32, ncclInt64, ncclBfloat16, ncclFloat64};
  constexpr ncclRedOp_t kOperators[] = {ncclSum, ncclMax, ncclMin, ncclAvg};
  std::mt19937 random(group * 1000 + number);
  const uint32_t below = 1u << (random() % (largestLog + 1));
  Call call{1 + random() % below, kTypes[random() % std::size(kTypes)], kOperators[random() % std::size(kOperators)]};
  if (isExact && call.type != ncclInt8 && call.type != ncclInt64) call.op = ncclMax;
  return call;
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
  Aggregators servers;
  std::vector<Rank> ranks{kMembers};
  std::vector<std::vector<Handle>> handles;
  bool isExact = false;  // calls whose result does not depend on the order

  // With a fan-in of two, so that several servers make a tree.
  explicit Load(uint32_t groups, const ServerLimits& limits = {}, uint32_t serverCount = 1)
      : servers(serverCount, limits), handles(groups, std::vector<Handle>(kMembers)) {
    ncclrun::prepareOpenFiles(5 * groups * kMembers);
    for (uint32_t rank = 0; rank < kMembers; rank++) {
      ranks[rank].rank = rank;
      OK(makeAggregatorNetwork(
          {.servers = servers.handles, .token = kJobToken, .address = "127.0.0.1", .fanIn = kFanIn},
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
  size_t most(size_t Server::Figures::*figure) const {
    size_t value = 0;
    for (const auto& server : servers.all) value = std::max(value, server->figures().*figure);
    return value;
  }
  // Waits until no aggregator has anything left.
  void expectEmpty() {
    for (Rank& rank : ranks) rank.groups.clear();
    const uint64_t until = nowNanoseconds() + kLong;
    while (nowNanoseconds() < until) {
      using Figures = Server::Figures;
      if (most(&Figures::members) == 0 && most(&Figures::groups) == 0 && most(&Figures::chunkBytes) == 0) return;
      std::this_thread::yield();
    }
    failTest(__FILE__, __LINE__, "the aggregator keeps members, groups or chunks");
  }
};

// 512 reductions are under way at every member.
void runRandomReductions(Load& load) {
  load.each([&](Rank& rank) {
    rank.connect(load.handles);
    std::vector<std::vector<Open>> open(kGroups, std::vector<Open>(8));
    for (uint32_t round = 0; round < 3; round++) {
      for (uint32_t group = 0; group < kGroups; group++) {
        for (uint32_t i = 0; i < 8; i++)
          rank.begin(group, callOf(group, round * 8 + i, 15, load.isExact), open[group][i]);
      }
      rank.complete(open);
    }
  });
  load.expectEmpty();
}

void sixtyFourGroupsOfRandomReductions() {
  Load load(kGroups);
  runRandomReductions(load);
}
// Whose result is the same whatever the order, so that sums of floats are left out.
void sixtyFourGroupsInATree() {
  Load load(kGroups, {}, 3);
  load.isExact = true;
  runRandomReductions(load);
}

// Three members of 8 groups contribute 8 chunks each while the fourth one is late: more than the limit.
void expectBoundedMemory(uint32_t servers) {
  constexpr size_t kLimit = 4 << 20;
  constexpr uint32_t kFew = 8;
  Load load(kFew, {.memoryBytes = kLimit}, servers);
  std::atomic<uint32_t> waiting{0};
  load.each([&](Rank& rank) {
    rank.connect(load.handles);
    std::vector<std::vector<Open>> open(kFew, std::vector<Open>(1));
    const auto begin = [&](uint32_t group) {
      rank.begin(group, {kChunkBytes / 4 * 12 + 5, ncclInt32, ncclSum}, open[group][0]);
    };
    if (rank.rank != 3) {
      for (uint32_t group = 0; group < kFew; group++) begin(group);
      waiting++;
    } else {
      // The aggregator has taken as much as it may.
      const uint64_t until = nowNanoseconds() + kLong;
      while ((waiting < 3 || load.most(&Server::Figures::chunkBytes) < kLimit) && nowNanoseconds() < until)
        std::this_thread::yield();
      EXPECT(load.most(&Server::Figures::chunkBytes) >= kLimit);
      for (uint32_t group = kFew; group-- > 0;) begin(group);
    }
    rank.complete(open);
  });
  // Beside the limit, one chunk of each member of each group is taken, and results are on their way.
  constexpr size_t kBeside = size_t(kFew) * (kMembers + ncclrun::aggregator::kWindow) * kChunkBytes;
  EXPECT(load.most(&Server::Figures::mostChunkBytes) <= kLimit + kBeside);
  load.expectEmpty();
}
void memoryIsBounded() { expectBoundedMemory(1); }
void memoryIsBoundedInATree() { expectBoundedMemory(3); }

// Group 0 lacks a member and has filled the memory: others go on.
void expectNoHoldUp(uint32_t servers) {
  Load load(2, {.memoryBytes = kChunkBytes}, servers);
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

void aGroupThatWaitsHoldsUpNoOther() { expectNoHoldUp(1); }
void aGroupThatWaitsHoldsUpNoOtherInATree() { expectNoHoldUp(3); }

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

void expectNoGrowth(Members& members) {
  std::atomic<size_t> before{0}, after{0};
  members.connected([&](Member& member) {
    GroupMemory from(*member.group, 20'000), to(*member.group, 20'000);
    for (uint32_t i = 0; i < 10'000; i++) {
      if (i == 1000 && member.rank == 0) before = residentBytes();
      OK(member.await(post(member, from.buffer(), to.buffer(), 1 + i % 5000)));
    }
    if (member.rank == 0) after = residentBytes();
  });
  EXPECT(after < before + kGrowth);
}
void tenThousandReductionsWithoutGrowth() {
  AggregatorJob job(2);
  expectNoGrowth(*job.members);
}
void tenThousandReductionsWithoutGrowthInATree() {
  const Aggregators servers(3);
  expectNoGrowth(*membersAt(servers.handles, 3, kLong, kJobToken, kFanIn));
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(sixtyFourGroupsOfRandomReductions);
  RUN(sixtyFourGroupsInATree);
  RUN(memoryIsBounded);
  RUN(memoryIsBoundedInATree);
  RUN(aGroupThatWaitsHoldsUpNoOther);
  RUN(aGroupThatWaitsHoldsUpNoOtherInATree);
  RUN(tenThousandReductionsWithoutGrowth);
  RUN(tenThousandReductionsWithoutGrowthInATree);
  return isFine ? 0 : 1;
}
