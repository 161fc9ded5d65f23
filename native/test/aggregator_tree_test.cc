// Groups that a tree of aggregators serves: their results, and what members learn of each other across it.
#include <algorithm>
#include <cstring>

#include "aggregator/tree.h"
#include "base/clock.h"
#include "net/aggregator_job.h"
#include "net/contribution.h"

using namespace ncclrun::test;
using ncclrun::Status;
using ncclrun::aggregator::ServerLimits;
using ncclrun::aggregator::Tree;
using ncclrun::net::Request;

namespace {

constexpr uint32_t kSeven = 7;
// Seven members with a fan-in of two: leaves, nodes above them, and the root.
const Levels kThreeLevels = {{1, 2, 2, 2}, {2, 2}, {2}};

// Members, and a server for every node of their tree unless there are fewer servers.
struct TreeJob {
  Aggregators servers;
  std::unique_ptr<Members> members;

  explicit TreeJob(uint32_t count, uint32_t serverCount, uint32_t fanIn = 2, const ServerLimits& limits = {})
      : servers(serverCount, limits), members(membersAt(servers.handles, count, 20'000'000'000, kJobToken, fanIn)) {}
};

void theTreeIsBalanced() {
  const Tree seven(kSeven, 2);
  EXPECT(seven.levels() == 3);
  for (uint32_t level = 0, number = 0; level < 3; level++) {
    EXPECT(seven.nodes(level) == kThreeLevels[level].size());
    for (uint32_t node = 0; node < seven.nodes(level); node++)
      EXPECT(seven.numberOf(level, node) == number++ && seven.children(level, node).count == kThreeLevels[level][node]);
  }
  EXPECT(seven.ranks(1, 1).first == 3 && seven.ranks(1, 1).count == 4 && seven.ranks(2, 0).count == kSeven);
}
// Every child has exactly one parent, and no node has more children than it may.
void everyChildHasOneParent() {
  for (const uint32_t fanIn : {2u, 3u, 32u}) {
    for (uint32_t members = 1; members < 200; members++) {
      const Tree tree(members, fanIn);
      for (uint32_t level = 0, below = members; level < tree.levels(); below = tree.nodes(level++)) {
        uint32_t first = 0, rank = 0;
        for (uint32_t node = 0; node < tree.nodes(level); node++) {
          const Tree::Range children = tree.children(level, node), ranks = tree.ranks(level, node);
          EXPECT(children.first == first && children.count > 0 && children.count <= fanIn && ranks.first == rank);
          for (uint32_t i = 0; i < children.count; i++) EXPECT(tree.parentOf(level, first + i) == node);
          first += children.count;
          rank += ranks.count;
        }
        EXPECT(first == below && rank == members);
      }
      EXPECT(tree.nodes(tree.levels() - 1) == 1);
    }
  }
}

struct Case {
  ncclDataType_t type;
  ncclRedOp_t op;
  size_t count;
  std::vector<char> expected;
};

void everyReductionIsTheSerialOneOf(TreeJob& job, const Levels& levels, std::span<const ncclDataType_t> types,
                                    std::span<const ncclRedOp_t> operators, std::span<const size_t> counts) {
  std::vector<Case> cases;
  for (const ncclDataType_t type : types) {
    for (const ncclRedOp_t op : operators) {
      for (const size_t count : counts) cases.push_back({type, op, count, serialInTree(type, levels, count, op)});
    }
  }
  job.members->connected([&](Member& member) {
    for (const auto& [type, op, count, expected] : cases) {
      GroupMemory from(*member.group, expected.size()), to(*member.group, expected.size());
      fillContribution(type, from.bytes.data(), member.rank, count);
      OK(member.await(post(member, from.buffer(), to.buffer(), count, type, op)));
      EXPECT(std::memcmp(to.bytes.data(), expected.data(), expected.size()) == 0);
    }
  });
}
void everyTypeAndOperatorIsTheSerialReductionInBlocks() {
  constexpr size_t kCounts[] = {1, 3, 1000, 40'000};
  TreeJob job(kSeven, 7);
  everyReductionIsTheSerialOneOf(job, kThreeLevels, kAllTypes, kAllOperators, kCounts);
}
void severalChunks() {
  constexpr size_t kCounts[] = {65'536, 65'537, 1'000'000};
  constexpr ncclDataType_t kFloat[] = {ncclFloat32};
  constexpr ncclRedOp_t kSum[] = {ncclSum};
  TreeJob job(kSeven, 7);
  everyReductionIsTheSerialOneOf(job, kThreeLevels, kFloat, kSum, kCounts);
}
// Each serves several nodes, and is its own parent in some.
void fewerServersThanNodes() {
  constexpr size_t kCounts[] = {5, 70'000};
  constexpr ncclDataType_t kSome[] = {ncclFloat32, ncclInt32, ncclBfloat16};
  for (const uint32_t servers : {2u, 3u}) {
    TreeJob job(kSeven, servers);
    everyReductionIsTheSerialOneOf(job, kThreeLevels, kSome, kAllOperators, kCounts);
  }
}
void oneServerServesAllMembersDirectly() {
  constexpr size_t kCounts[] = {1000};
  constexpr ncclDataType_t kFloat[] = {ncclFloat32};
  TreeJob job(kSeven, 1);
  everyReductionIsTheSerialOne(*job.members, kFloat, kAllOperators, kCounts);
}
// Where the order makes no difference, neither does the tree.
void exactReductionsAreThoseOfOneServer() {
  constexpr size_t kCounts[] = {1000};
  constexpr ncclDataType_t kIntegers[] = {ncclInt8, ncclUint8, ncclInt32, ncclUint32, ncclInt64, ncclUint64};
  constexpr ncclRedOp_t kExtrema[] = {ncclMax, ncclMin};
  TreeJob integers(kSeven, 7), extrema(kSeven, 7);
  everyReductionIsTheSerialOne(*integers.members, kIntegers, kAllOperators, kCounts);
  everyReductionIsTheSerialOne(*extrema.members, kAllTypes, kExtrema, kCounts);
}
void fortyMembersWithTheDefaultFanIn() {
  constexpr size_t kCounts[] = {1, 70'000};
  constexpr ncclDataType_t kFloat[] = {ncclFloat32};
  constexpr ncclRedOp_t kSum[] = {ncclSum};
  TreeJob job(40, 3, ncclrun::aggregator::kDefaultFanIn);
  everyReductionIsTheSerialOneOf(job, {{20, 20}, {2}}, kFloat, kSum, kCounts);
}
void eightAreUnderWayThroughTheTree() {
  TreeJob job(kSeven, 7);
  job.members->connected([](Member& member) {
    constexpr size_t kCount = 5000, kBytes = kCount * sizeof(int32_t);
    GroupMemory from(*member.group, kBytes * 8), to(*member.group, kBytes * 8);
    for (size_t i = 0; i < 8; i++) fillContribution<int32_t>(from.bytes.data() + i * kBytes, member.rank, kCount);
    std::vector<Request*> requests;
    for (size_t i = 0; i < 8; i++)
      requests.push_back(post(member, from.buffer(i * kBytes), to.buffer(i * kBytes), kCount, ncclInt32));
    for (Request* const request : requests) OK(member.await(request));
    const std::vector<char> expected = serial<int32_t>(member.members, kCount, ncclSum);
    for (size_t i = 0; i < 8; i++) EXPECT(std::memcmp(to.bytes.data() + i * kBytes, expected.data(), kBytes) == 0);
  });
}

// What a member's next reduction of `count` elements answers.
Status outcomeOf(Member& member, size_t count) {
  GroupMemory from(*member.group, count * 4), to(*member.group, count * 4);
  Request* request = nullptr;
  const Status status = member.group->iallreduce(from.buffer(), to.buffer(), count, {}, request);
  return status.ok() ? member.await(request) : status;
}
void differentCallsInDifferentBlocksEndTheGroup() {
  TreeJob job(kSeven, 7);
  job.members->each([&](Member& member) {
    OK(member.connect(job.members->handles));
    reduceAndCompare(member, 100, ncclInt32, ncclSum);
    const Status status = outcomeOf(member, member.rank < 3 ? 8 : 9);
    REFUSED(status, ncclInvalidUsage, "the members of the group make different calls: the aggregator of ranks ");
    REFUSED(status, ncclInvalidUsage, "collective 1: 32 bytes of type 7 by operator 0");
    REFUSED(status, ncclInvalidUsage, "collective 1: 36 bytes of type 7 by operator 0");
  });
}
void whoeverNeedsAMemberOfAnotherBlockThatHasLeftLearnsIt() {
  TreeJob job(kSeven, 7);
  job.members->each([&](Member& member) {
    OK(member.connect(job.members->handles));
    reduceAndCompare(member, 100'000, ncclInt32, ncclSum);
    if (member.rank != 6) REFUSED(outcomeOf(member, 1), ncclInvalidUsage, "rank 6 (");
    member.group.reset();
  });
}
// Several times, because members leave while results are on their way to others.
void membersLeaveWhenTheyAreDone() {
  Aggregators servers(3);
  for (int round = 0; round < 20; round++) {
    const auto members = membersAt(servers.handles, kSeven, 20'000'000'000, kJobToken, 2);
    members->connected([](Member& member) { reduceAndCompare(member, 200'000, ncclInt32, ncclSum); });
  }
  const uint64_t until = ncclrun::nowNanoseconds() + 20'000'000'000;
  for (const auto& server : servers.all) {
    while (server->figures().groups > 0 && ncclrun::nowNanoseconds() < until) std::this_thread::yield();
    EXPECT(server->figures().groups == 0 && server->figures().members == 0 && server->figures().chunkBytes == 0);
  }
}

// absent: by rank. Everybody else learns the words.
void expectMissing(const std::vector<uint32_t>& absent, const std::string& words) {
  TreeJob job(kSeven, 7, 2, {.joinTimeout = 300'000'000});
  job.members->each([&](Member& member) {
    if (std::find(absent.begin(), absent.end(), member.rank) != absent.end()) return;
    REFUSED(member.connect(job.members->handles), ncclRemoteError, words);
  });
}
void membersThatNeverComeAreNamed() {
  expectMissing({3, 4}, "of 7 ranks 3 to 4 have not joined the group within 0.3 s");
  expectMissing({0}, "of 7 ranks 0 have not joined the group within 0.3 s");
  expectMissing({6}, "of 7 ranks 6 have");
}
void aMemberThatGivesUpConnectingIsLostForAll() {
  TreeJob job(kSeven, 7);
  const auto serverOf = [&](const auto& has) {
    return std::any_of(job.servers.all.begin(), job.servers.all.end(), has);
  };
  const uint64_t until = ncclrun::nowNanoseconds() + 10'000'000'000;
  Member& first = job.members->all[5];
  while (!serverOf([](const auto& server) { return server->figures().groups > 0; }) &&
         ncclrun::nowNanoseconds() < until)
    OK(first.listener->connect(job.members->handles, 5, first.group));
  first.listener.reset();
  job.members->each([&](Member& member) {
    if (member.rank != 5) REFUSED(member.connect(job.members->handles), ncclRemoteError, "rank 5 (127.0.0.1 port ");
  });
}
}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(theTreeIsBalanced);
  RUN(everyChildHasOneParent);
  RUN(everyTypeAndOperatorIsTheSerialReductionInBlocks);
  RUN(severalChunks);
  RUN(fewerServersThanNodes);
  RUN(oneServerServesAllMembersDirectly);
  RUN(exactReductionsAreThoseOfOneServer);
  RUN(fortyMembersWithTheDefaultFanIn);
  RUN(eightAreUnderWayThroughTheTree);
  RUN(differentCallsInDifferentBlocksEndTheGroup);
  RUN(whoeverNeedsAMemberOfAnotherBlockThatHasLeftLearnsIt);
  RUN(membersLeaveWhenTheyAreDone);
  RUN(membersThatNeverComeAreNamed);
  RUN(aMemberThatGivesUpConnectingIsLostForAll);
  return isFine ? 0 : 1;
}
