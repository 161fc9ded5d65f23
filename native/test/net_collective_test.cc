// Collective networks (ncclCollNet) of plugins: every version of the interface computes what ranks would have computed
// one after the other, and failures and refusals are sentences.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "net/collective_scenarios.h"
#include "net/contribution.h"
#include "net/plugin/collective_plugin.h"

using namespace ncclrun::test;
using ncclrun::Status;
using ncclrun::net::CollectiveNetwork;
using ncclrun::net::Network;
using ncclrun::net::RegisteredBuffer;
using ncclrun::net::Request;

namespace {

constexpr uint32_t kMembers = 4;
constexpr int kFirstWithGather = 8;
constexpr ncclDataType_t kTypes[] = {ncclInt8,  ncclUint8,  ncclInt32,   ncclUint32,
                                     ncclInt64, ncclUint64, ncclFloat32, ncclFloat64};
constexpr ncclRedOp_t kOperators[] = {ncclSum, ncclProd, ncclMax, ncclMin};

int version = 0;  // of the double that a scenario uses
std::string doubleName() { return "double-v" + std::to_string(version); }

void everyReductionOf(const std::string& plugin) {
  constexpr size_t kCounts[] = {1, 3, 1000, 40'000};
  Members members(plugin, kMembers);
  everyReductionIsTheSerialOne(members, kTypes, kOperators, kCounts);
}
void everyVersionReduces() { everyReductionOf(doubleName()); }
void theExampleReduces() { everyReductionOf("example"); }

void logNothing(int, unsigned long, const char*, int, const char*, ...) {}

// A group of one member through the table that the example exports for this version.
void everyTableOfTheExample() {
  void* const library = dlopen(pluginPath("example").c_str(), RTLD_NOW);
  EXPECT(library != nullptr);
  void* const table = dlsym(library, ("ncclCollNetPlugin_v" + std::to_string(version)).c_str());
  EXPECT(table != nullptr);
  const auto calls = ncclrun::net::plugin::adaptCollective(version, table);
  EXPECT(calls->missing().empty() && calls->missingAtStart().empty() && std::string(calls->name()) == "Example");
  void *context = nullptr, *listener = nullptr, *comm = nullptr, *registration = nullptr, *request = nullptr;
  int devices = 0;
  EXPECT(calls->init(&context, 7, logNothing, nullptr) == 0);
  EXPECT((context != nullptr) == (version >= 11));
  EXPECT(calls->devices(&devices) == 0 && devices > 0);
  ncclrun::net::plugin::NewestProperties properties;
  EXPECT(calls->getProperties(0, &properties) == 0);
  EXPECT(properties.v9.name[0] != '\0' && properties.v9.speed > 0 && properties.v9.maxRecvs == 8);
  EXPECT(properties.v9.maxCollBytes == (version < 9 ? size_t(1) << 29 : size_t(1) << 30));
  EXPECT(properties.v9.members.count == 1 && properties.railId == -1 && properties.planeId == -1);
  alignas(16) ncclrun::net::Handle handle{};
  void* handles[] = {handle.data()};
  EXPECT(calls->listen(context, 0, handle.data(), &listener) == 0);
  EXPECT(calls->connect(handles, 1, 0, listener, &comm) == 0);
  float from[] = {1, 2, 3, 4}, to[] = {0, 0, 0, 0};
  EXPECT(calls->regMr(comm, from, sizeof from, 1, &registration) == 0);
  const auto arrived = [&](size_t first, size_t count) {
    int done = 0, bytes = 0;
    EXPECT(request != nullptr);
    while (done == 0) EXPECT(calls->test(request, &done, &bytes) == 0);
    EXPECT(bytes == int(count * sizeof(float)) && std::memcmp(to, from + first, size_t(bytes)) == 0);
    request = nullptr;
    std::fill(std::begin(to), std::end(to), 0.0f);
  };
  EXPECT(calls->iallreduce(comm, from, to, 4, ncclFloat32, ncclSum, registration, registration, &request) == 0);
  arrived(0, 4);
  EXPECT(calls->hasGather() == (version >= kFirstWithGather));
  if (calls->hasGather()) {
    EXPECT(calls->iallgather(comm, from + 1, {registration, to, 8}, {16, 4, 8}, registration, &request) == 0);
    arrived(1, 2);
    EXPECT(calls->ireducescatter(comm, {registration, from + 1, 8}, to, {16, 4, 8}, ncclFloat32, ncclMax, registration,
                                 &request) == 0);
    arrived(1, 2);
  }
  EXPECT(calls->deregMr(comm, registration) == 0 && calls->closeColl(comm) == 0 && calls->closeListen(listener) == 0);
  if (version >= 11) EXPECT(calls->finalize(context) == 0);
}

void delayedAndRefusedReductions() {
  plant("done-after=7,null-request=3,no-sizes");
  Members members(doubleName(), 3);
  members.connected([](Member& member) {
    for (const size_t count : {1, 70'000}) reduceAndCompare(member, count, ncclFloat64, ncclSum);
  });
  EXPECT(members.count("refused") == 3 * 2 * 3);
}

void eightAreUnderWay() {
  Members members(doubleName(), 3);
  eightCollectivesAreUnderWay(members);
}

// Windows that begin and end within the parts of members.
void gatherAndScatter() {
  Members members(doubleName(), 3);
  members.connected([](Member& member) {
    constexpr size_t kPart = 1000 * sizeof(int32_t);
    const size_t mine = member.rank * kPart;
    GroupMemory whole(*member.group, 3 * kPart), part(*member.group, kPart), to(*member.group, 3 * kPart);
    fillContribution<int32_t>(part.bytes.data(), member.rank, 1000);
    fillContribution<int32_t>(whole.bytes.data(), member.rank, 3000);
    EXPECT(member.collective->canGather() == (version >= kFirstWithGather));
    Request* request = nullptr;
    if (version < kFirstWithGather) {
      REFUSED(member.group->iallgather(part.buffer(), to.buffer(), {kPart, 0, 3 * kPart}, request), ncclInvalidUsage,
              "version " + std::to_string(version) + " of the interface, neither gathers nor scatters");
      REFUSED(member.group->ireducescatter(whole.buffer(), to.buffer(), {kPart, 0, 3 * kPart}, {}, request),
              ncclInvalidUsage, "neither gathers nor scatters");
      return;
    }
    const std::vector<char> sums = serial<int32_t>(3, 3000, ncclSum);
    for (const auto& [offset, bytes] : {std::pair<size_t, size_t>{0, 3 * kPart}, {400, 2 * kPart}, {kPart, 8}}) {
      const size_t from = std::clamp(offset, mine, mine + kPart);
      const size_t end = std::clamp(offset + bytes, mine, mine + kPart);
      std::fill(to.bytes.begin(), to.bytes.end(), 0);
      OK(member.group->iallgather(part.buffer(from - mine), to.buffer(), {kPart, offset, bytes}, request));
      OK(member.await(request));
      for (size_t at = offset; at < offset + bytes; at += sizeof(int32_t)) {
        const auto expected = element<int32_t>(uint32_t(at / kPart), at % kPart / sizeof(int32_t));
        EXPECT(std::memcmp(to.bytes.data() + (at - offset), &expected, sizeof expected) == 0);
      }
      OK(member.group->ireducescatter(whole.buffer(offset), to.buffer(), {kPart, offset, bytes}, {ncclInt32, ncclSum},
                                      request));
      OK(member.await(request));
      // Each member's contribution is the whole buffer, of which the window's elements are reduced.
      EXPECT(std::memcmp(to.bytes.data(), sums.data() + from, end - from) == 0);
    }
  });
}

// What a member's collective answers when another one has left the group.
void expectFailure(Member& member) {
  GroupMemory from(*member.group, 4000), to(*member.group, 4000);
  Status status;
  Request* request = nullptr;
  while (status.ok() && request == nullptr)
    status = member.group->iallreduce(from.buffer(), to.buffer(), 1000, {}, request);
  if (status.ok()) status = member.await(request);
  EXPECT(!status.ok());
  EXPECT(status.sentence.find("collective network plugin Double") != std::string::npos);
  bool done = false;
  REFUSED(member.group->test(request, done), status.code, status.sentence);
}

void aGroupThatFailsAtOneMember() {
  plant("coll-fails=2");
  Members members(doubleName(), 3);
  members.each([&](Member& member) {
    const Status joined = member.connect(members.handles);
    if (member.rank == 1) {
      REFUSED(joined, ncclSystemError, "connect: system error (2); its last warning: ");
      return;
    }
    // The others learn it from their first collective, and the last one when the first one leaves.
    OK(joined);
    expectFailure(member);
    member.group.reset();
  });
}

void aMemberThatNeverComes() {
  Members members(doubleName(), 2, 200'000'000);
  REFUSED(members.all[0].connect(members.handles), ncclSystemError, "connect: the call has not returned for 200 ms");
}

void aConnectThatBlocksKeepsNobodyWaiting() {
  plant("block-ms=300");
  Members members(doubleName(), 2);
  Member& first = members.all[0];
  const auto began = std::chrono::steady_clock::now();
  OK(first.listener->connect(members.handles, 0, first.group));
  EXPECT(first.group == nullptr && millisecondsSince(began) < 250);
  members.connected([](Member& member) { reduceAndCompare(member, 10, ncclInt32, ncclMax); });
}

void anErrorIsTheEndOfAGroup() {
  plant("test-error=3");
  Members members(doubleName(), 1);
  members.connected([](Member& member) {
    reduceAndCompare(member, 10, ncclInt32, ncclMin);
    GroupMemory memory(*member.group, 8);
    Status status;
    while (status.ok()) status = member.await(post(member, memory.buffer(), memory.buffer(4), 1));
    REFUSED(status, ncclRemoteError, "test: remote error (6); its last warning: the aggregation node has gone");
    Request* request = nullptr;
    REFUSED(member.group->iallreduce(memory.buffer(), memory.buffer(4), 1, {}, request), ncclRemoteError,
            "the aggregation node has gone");
  });
}

void sizesAndTypesThatAreNotSupported() {
  plant("coll-float,coll-max-bytes=4096,wrong-sizes");
  Members members(doubleName(), 1);
  members.connected([](Member& member) {
    const CollectiveNetwork& network = *member.collective;
    EXPECT(network.canReduce({ncclFloat32, ncclProd}) && !network.canReduce({ncclInt32, ncclSum}));
    EXPECT(!network.canReduce({ncclFloat32, ncclAvg}) && !network.canReduce({ncclDataType_t(ncclNumTypes), ncclSum}));
    GroupMemory memory(*member.group, 16384);
    Request* request = nullptr;
    REFUSED(member.group->iallreduce(memory.buffer(), memory.buffer(8192), 4, {ncclInt32, ncclSum}, request),
            ncclInvalidUsage, "does not reduce type 2 by operator 0");
    // Versions before 9 do not say how large a collective may be.
    const size_t tooMany = version < 9 ? (size_t(1) << 27) + 1 : 1025;
    const std::string most = version < 9 ? "536870912" : "4096";
    for (const size_t count : {tooMany, std::numeric_limits<size_t>::max() / 2, size_t(0)})
      REFUSED(member.group->iallreduce(memory.buffer(), memory.buffer(8192), count, {}, request), ncclInvalidArgument,
              "has 1 to " + most + " bytes, not ");
    REFUSED(member.await(post(member, memory.buffer(), memory.buffer(8192), 1024)), ncclInternalError,
            "test reports 1073741824 bytes of a collective of 4096");
  });
}

void dataInGpuMemoryIsFlushed() {
  plant("device-memory");
  Members members(doubleName(), 2);
  members.connected([](Member& member) {
    GroupMemory from(*member.group, 400), to(*member.group, 400, ncclrun::net::MemoryType::device);
    fillContribution<float>(from.bytes.data(), member.rank, 100);
    OK(member.await(post(member, from.buffer(), to.buffer(), 100)));
    const std::vector<char> expected = serial<float>(2, 100, ncclSum);
    EXPECT(std::memcmp(to.bytes.data(), expected.data(), 400) != 0);
    Request* flush = nullptr;
    OK(member.group->iflush(to.buffer(), 400, flush));
    EXPECT(flush != nullptr);
    OK(member.await(flush));
    EXPECT(std::memcmp(to.bytes.data(), expected.data(), 400) == 0);
  });
  EXPECT(members.count("flush") == 2);
}

// The network of the double of `name`, and what its collective network answers.
Status collectiveOf(const std::string& name, std::unique_ptr<Network>& network,
                    std::unique_ptr<CollectiveNetwork>& out) {
  ncclrun::net::plugin::Plugin* plugin = nullptr;
  OK(openPlugin(pluginPath(name), plugin));
  OK(makeNetwork(*plugin, 7, network));
  return network->makeCollective(out);
}

void expectNoCollective(const char* behaviour, ncclResult_t code, const std::string& words) {
  plant(behaviour);
  std::unique_ptr<Network> network;
  std::unique_ptr<CollectiveNetwork> collective;
  REFUSED(collectiveOf(doubleName(), network, collective), code, "collective network plugin Double");
  REFUSED(network->makeCollective(collective), code, words);
  EXPECT(collective == nullptr && !network->devices().empty());
}
void aCollectiveNetworkWithoutDevices() {
  expectNoCollective("coll-none,coll-lacks", ncclSystemError, "finds no device on this host");
}
void aTableThatLacksMembers() { expectNoCollective("coll-lacks", ncclInternalError, "has no getProperties"); }
void anInitThatFails() {
  expectNoCollective("coll-init-error=2", ncclSystemError,
                     "init: system error (2); its last warning: no aggregation manager answers");
}

void aConnectThatMakesNothing() {
  plant("coll-null");
  Members members(doubleName(), 1);
  REFUSED(members.all[0].connect(members.handles), ncclInternalError, "connect made no group");
}

void wrongArguments() {
  Members members(doubleName(), 1);
  wrongArgumentsAreRefused(members);
}

void aContextForEachCommunicator() {
  {
    Members members(doubleName(), 3);
    members.connected([](Member& member) { reduceAndCompare(member, 1, ncclUint8, ncclSum); });
    EXPECT(members.count("coll-init") == (version < 11 ? 1 : 3) && members.count("coll-finalize") == 0);
  }
  EXPECT(counted(pluginPath(doubleName()), "coll-finalize") == (version < 11 ? 0 : 3));
  EXPECT(counted(pluginPath(doubleName()), "groups") == 0);
}

void versionsAreThoseOfTheCollectiveNetwork() {
  std::unique_ptr<Network> network;
  std::unique_ptr<CollectiveNetwork> collective;
  OK(collectiveOf("double-plain", network, collective));
  EXPECT(collective == nullptr);
  for (const auto& [name, expected] : {std::pair{"double-all", 12}, {"double-some", 8}}) {
    ncclrun::net::plugin::Plugin* plugin = nullptr;
    OK(openPlugin(pluginPath(name), plugin));
    OK(makeNetwork(*plugin, 7, network));
    EXPECT(plugin->collective() != nullptr && plugin->collective()->calls().version() == expected);
  }
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario((std::string(#body) + " v" + std::to_string(version)).c_str(), body)
  for (version = 6; version <= 12; version++) {
    RUN(everyVersionReduces);
    RUN(delayedAndRefusedReductions);
    RUN(eightAreUnderWay);
    RUN(gatherAndScatter);
    RUN(aGroupThatFailsAtOneMember);
    RUN(aMemberThatNeverComes);
    RUN(aConnectThatBlocksKeepsNobodyWaiting);
    RUN(anErrorIsTheEndOfAGroup);
    RUN(sizesAndTypesThatAreNotSupported);
    RUN(dataInGpuMemoryIsFlushed);
    RUN(aCollectiveNetworkWithoutDevices);
    RUN(aTableThatLacksMembers);
    RUN(anInitThatFails);
    RUN(aConnectThatMakesNothing);
    RUN(wrongArguments);
    RUN(aContextForEachCommunicator);
    RUN(everyTableOfTheExample);
  }
  RUN(theExampleReduces);
  RUN(versionsAreThoseOfTheCollectiveNetwork);
  return isFine ? 0 : 1;
}
