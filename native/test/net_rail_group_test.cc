// The group of a rail over a plugin's collective network and over an aggregator: what blocks put into one ring comes
// back reduced in the other, and a group that cannot be used, or fails, says why.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/element.h"
#include "datapath/reduce.h"
#include "net/aggregator_job.h"
#include "net/contribution.h"
#include "net/proxy/rail_group.h"

using namespace ncclrun::test;
using ncclrun::networkReduction;
using ncclrun::NetworkReductions;
using ncclrun::RailGroup;
using ncclrun::Status;
using ncclrun::StepCall;
using ncclrun::aggregator::Aggregator;
using ncclrun::net::CollectiveNetwork;
using ncclrun::net::Handle;
using ncclrun::net::Network;

namespace {

constexpr uint32_t kSteps = 4, kStepBytes = 4096;
constexpr uint64_t kLong = 20'000'000'000;  // ns

// A network that moves nothing, with the collective network of an aggregator; or with none.
class CollectiveAlone final : public Network {
 public:
  explicit CollectiveAlone(const Handle* server) : hasServer_(server != nullptr) {
    if (hasServer_) server_ = *server;
  }
  const std::string& name() const override { return name_; }
  std::span<const ncclrun::net::Device> devices() const override { return {}; }
  bool threadBound() const override { return false; }
  bool deliversAfterClose() const override { return true; }
  Status listen(uint32_t, Handle&, std::unique_ptr<ncclrun::net::Listener>&) override { return {}; }
  Status connect(uint32_t, const Handle&, std::unique_ptr<ncclrun::net::Connector>&) override { return {}; }
  Status makeCollective(std::unique_ptr<CollectiveNetwork>& out) override {
    if (!hasServer_) return {};
    return ncclrun::aggregator::makeAggregatorNetwork(
        {.servers = {server_}, .token = kJobToken, .address = "127.0.0.1"}, out);
  }

 private:
  const std::string name_ = "Alone";
  const bool hasServer_;
  Handle server_ = {};
};

// One reduction that the rail makes: the same on all members.
struct Step {
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  size_t count = 1;
};
Step stepOf(uint64_t number) {
  constexpr ncclDataType_t kTypes[] = {ncclFloat32, ncclInt32, ncclFloat64, ncclUint8};
  constexpr ncclRedOp_t kOperators[] = {ncclSum, ncclMax, ncclProd, ncclMin};
  const ncclDataType_t type = kTypes[number % 4];
  return {type, kOperators[number / 4 % 4], 1 + number * 37 % (kStepBytes / ncclrun::elementBytes(type))};
}

// A member: its group, and the block that fills and empties the rings.
struct Place {
  uint32_t index = 0, members = 0;
  std::unique_ptr<Network> network;
  std::unique_ptr<RailGroup> group;
  uint64_t filled = 0, emptied = 0;

  std::byte* slot(RailGroup::Side& side, uint64_t step) const { return side.slots + step % kSteps * group->stride(); }
  bool canFill() const { return filled < group->sends().ring.head.load() + kSteps; }
  void fill() {
    RailGroup::Side& side = group->sends();
    const Step step = stepOf(filled);
    fillContribution(step.type, reinterpret_cast<char*>(slot(side, filled)), index, step.count);
    side.calls[filled % kSteps] = StepCall{.number = filled + 1, .type = uint8_t(step.type), .op = uint8_t(step.op)};
    side.ring.stepBytes[filled % kSteps] = uint32_t(step.count * ncclrun::elementBytes(step.type));
    side.ring.tail = ++filled;
  }
  void emptyAll() {
    RailGroup::Side& side = group->receives();
    while (emptied < side.ring.tail.load()) {
      const Step step = stepOf(emptied);
      const std::vector<char> expected = serial(step.type, members, step.count, step.op);
      EXPECT(side.ring.stepBytes[emptied % kSteps] == expected.size());
      EXPECT(std::memcmp(slot(side, emptied), expected.data(), expected.size()) == 0);
      EXPECT(side.calls[emptied % kSteps].number == emptied + 1);
      side.ring.head = ++emptied;
    }
  }
  // Moves the group, as its proxy does, until the condition holds.
  void moveUntil(const std::function<bool()>& condition) {
    const uint64_t until = ncclrun::nowNanoseconds() + kLong;
    while (!condition()) {
      group->advance();
      if (ncclrun::nowNanoseconds() > until) failTest(__FILE__, __LINE__, "the group does not go on");
      std::this_thread::yield();
    }
  }
  void decide() {
    moveUntil([&] { return group->isDecided(); });
  }
  // So many reductions, or until the group fails.
  void reduce(uint64_t steps) {
    const uint64_t end = filled + steps;
    moveUntil([&] {
      while (filled < end && canFill() && !group->hasFailed()) fill();
      emptyAll();
      return emptied == end || group->hasFailed();
    });
  }
};

struct Rail {
  std::vector<Place> all;

  // network: of a member; called in its order.
  Rail(uint32_t members, const std::function<std::unique_ptr<Network>(uint32_t)>& network) : all(members) {
    for (uint32_t index = 0; index < members; index++) {
      Place& place = all[index];
      place.index = index;
      place.members = members;
      place.network = network(index);
      OK(RailGroup::make({.network = *place.network,
                          .owner = "rank " + std::to_string(index),
                          .device = 0,
                          .index = index,
                          .members = members,
                          .steps = kSteps,
                          .stepBytes = kStepBytes,
                          .offer =
                              [this, index](const Handle* handle) {
                                for (Place& other : all) {
                                  if (other.index != index) other.group->onOffer(index, handle);
                                }
                              }},
                         place.group));
    }
  }
  // Each member in a thread of its own, which also closes its group; they close in any order.
  void each(const std::function<void(Place&)>& body) {
    std::vector<std::thread> threads;
    for (Place& place : all)
      threads.emplace_back([&] {
        body(place);
        place.group->close();
      });
    for (std::thread& thread : threads) thread.join();
  }
};

std::unique_ptr<Network> doubled() {
  ncclrun::net::plugin::Plugin* opened = nullptr;
  std::unique_ptr<Network> made;
  OK(ncclrun::net::plugin::openPlugin(pluginPath("double-v11"), opened));
  OK(ncclrun::net::plugin::makeNetwork(*opened, 7, made, kLong));
  return made;
}
long groupsLeft() { return counted(pluginPath("double-v11"), "groups"); }

// Bodies run over the double and over an aggregator.
void over(const std::function<void(const std::function<std::unique_ptr<Network>(uint32_t)>&)>& body) {
  body([](uint32_t) { return doubled(); });
  std::unique_ptr<Aggregator> server;
  OK(Aggregator::make({.address = "127.0.0.1", .token = kJobToken}, server));
  const Handle handle = server->handle();
  body([handle](uint32_t) { return std::make_unique<CollectiveAlone>(&handle); });
}

void whatTheNetworkReduces() {
  EXPECT(networkReduction(ncclFloat32, ncclMax)->op == ncclMax && networkReduction(ncclInt8, ncclProd)->op == ncclProd);
  EXPECT(networkReduction(ncclBfloat16, ncclAvg)->op == ncclSum);
  EXPECT(networkReduction(ncclInt32, ncclrun::kPreMulSum)->op == ncclSum);
  EXPECT(!networkReduction(ncclInt32, ncclAvg).has_value());
}

void stepsComeBackReduced() {
  over([](const auto& network) {
    Rail rail(3, network);
    rail.each([](Place& place) {
      EXPECT(!place.group->isDecided() && place.group->reductions() == 0);
      place.decide();
      EXPECT((place.group->reductions() & ncclrun::bitOf({ncclFloat32, ncclSum})) != 0);
      place.group->use(place.group->reductions());
      place.reduce(200);
      EXPECT(place.group->isIdle() && !place.group->hasFailed());
    });
  });
  EXPECT(groupsLeft() == 0);
}
void delayedAndRefusedSteps() {
  plant("done-after=5,null-request=3");
  Rail rail(3, [](uint32_t) { return doubled(); });
  rail.each([](Place& place) {
    place.decide();
    place.reduce(40);
    EXPECT(!place.group->hasFailed());
  });
}
// The block has filled all it can, and takes no result: nothing is reduced into slots that it has not emptied.
void slotsThatAreNotEmptiedHoldTheProxyBack() {
  over([](const auto& network) {
    Rail rail(1, network);
    Place& place = rail.all[0];
    place.decide();
    RailGroup::Side& results = place.group->receives();
    while (place.filled < kSteps) place.fill();
    place.moveUntil([&] { return results.ring.tail.load() == kSteps; });
    while (place.canFill()) place.fill();
    EXPECT(place.filled == 2 * kSteps);
    for (int i = 0; i < 1000; i++) place.group->advance();
    EXPECT(results.ring.tail.load() == kSteps && !place.group->isIdle());
    place.moveUntil([&] {
      place.emptyAll();
      return place.emptied == place.filled;
    });
    EXPECT(place.group->isIdle());
    place.group->close();
  });
}

void oneMemberWithoutANetworkLeavesNobodyAGroup() {
  over([](const auto& network) {
    Rail rail(3, [&](uint32_t index) -> std::unique_ptr<Network> {
      if (index == 1) return std::make_unique<CollectiveAlone>(nullptr);
      return network(index);
    });
    rail.each([](Place& place) {
      place.decide();
      EXPECT(place.group->hasNone() && place.group->reductions() == 0 && place.group->isIdle());
      EXPECT(place.group->why() ==
             (place.index == 1 ? "network Alone cannot reduce" : "a rank of another host has none"));
      EXPECT(!place.group->advance());
    });
  });
}
// The others have theirs, and close it once they have agreed that not all do.
void expectAgreementOnNone(const std::string& why) {
  Rail rail(3, [](uint32_t) { return doubled(); });
  std::atomic<NetworkReductions> common{~NetworkReductions(0)};
  std::atomic<uint32_t> decided{0};
  rail.each([&](Place& place) {
    place.decide();
    common &= place.group->reductions();
    decided++;
    place.moveUntil([&] { return decided == 3; });
    EXPECT(common == 0);
    place.group->use(common);
    place.moveUntil([&] { return place.group->hasNone(); });
    const bool isOwn = place.group->why().find(why) != std::string::npos;
    EXPECT(isOwn || place.group->why() == "not all ranks have one");
    if (place.index == 1) EXPECT(isOwn);
  });
  EXPECT(groupsLeft() == 0);
}
void aMemberWhoseConnectFailsHasNone() {
  plant("coll-fails=2");
  expectAgreementOnNone("no tree is left for this group");
}
void aMemberThatCannotRegisterHasNone() {
  plant("regions=0");
  expectAgreementOnNone("no more regions");
}
void nothingAgreedClosesTheGroup() {
  over([](const auto& network) {
    Rail rail(2, network);
    std::atomic<uint32_t> decided{0};
    rail.each([&](Place& place) {
      place.decide();
      EXPECT(place.group->reductions() != 0);
      decided++;
      place.moveUntil([&] { return decided == 2; });
      place.group->use(0);
      place.moveUntil([&] { return place.group->hasNone(); });
      EXPECT(place.group->reductions() == 0 && place.group->why() == "not all ranks have one");
    });
  });
  EXPECT(groupsLeft() == 0);
}

void aFailureInTheMiddleBreaksTheGroup() {
  plant("test-error=500");
  Rail rail(2, [](uint32_t) { return doubled(); });
  std::atomic<uint32_t> named{0};
  rail.each([&](Place& place) {
    place.decide();
    place.reduce(1'000'000);
    EXPECT(place.group->hasFailed() && !place.group->advance());
    EXPECT(place.group->failure().code == ncclRemoteError);
    named += place.group->failure().sentence.find("the aggregation node has gone") != std::string::npos;
  });
  EXPECT(named == 1 && groupsLeft() == 0);
}
// Member 1 closes its group while reductions are under way everywhere.
void aMemberThatClosesBreaksTheOthers() {
  over([](const auto& network) {
    Rail rail(3, network);
    std::atomic<uint32_t> decided{0};
    rail.each([&](Place& place) {
      place.decide();
      decided++;
      place.moveUntil([&] { return decided == 3; });
      if (place.index == 1) {
        place.reduce(20);
        while (place.canFill()) place.fill();
        for (int i = 0; i < 10; i++) place.group->advance();
        return;  // closes it
      }
      place.reduce(1'000'000);
      EXPECT(place.group->hasFailed());
      const std::string why = place.group->failure().sentence;
      EXPECT(why.find(": rank 1 (127.0.0.1 port ") != std::string::npos ||
             why.find("collective network plugin Double") != std::string::npos);
    });
  });
  EXPECT(groupsLeft() == 0);
}
// No other member has made a call.
void aGroupIsClosedWithRequestsOpen() {
  over([](const auto& network) {
    Rail rail(2, network);
    std::atomic<bool> isClosed{false};
    rail.each([&](Place& place) {
      place.decide();
      if (place.index == 1) {
        place.moveUntil([&] { return isClosed.load(); });
        return;
      }
      while (place.canFill()) place.fill();
      for (int i = 0; i < 100; i++) place.group->advance();
      EXPECT(!place.group->isIdle() && place.group->receives().ring.tail.load() == 0);
      place.group->close();
      isClosed = true;
    });
    for (Place& place : rail.all) place.group->close();  // once more
  });
  EXPECT(groupsLeft() == 0);
}
void aGroupIsClosedBeforeItIsConnected() {
  over([](const auto& network) {
    Rail rail(2, network);
    Place& place = rail.all[0];
    for (int i = 0; i < 5; i++) place.group->advance();
    EXPECT(!place.group->isDecided());
    place.group->close();
  });
}
void differentStepsBreakTheGroup() {
  std::unique_ptr<Aggregator> server;
  OK(Aggregator::make({.address = "127.0.0.1", .token = kJobToken}, server));
  const Handle handle = server->handle();
  Rail rail(2, [&](uint32_t) { return std::make_unique<CollectiveAlone>(&handle); });
  rail.each([](Place& place) {
    place.decide();
    place.fill();
    if (place.index == 1) place.group->sends().calls[0].op = ncclMin;
    place.moveUntil([&] { return place.group->hasFailed(); });
    REFUSED(place.group->failure(), ncclInvalidUsage, "the members of the group make different calls: rank ");
  });
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(whatTheNetworkReduces);
  RUN(stepsComeBackReduced);
  RUN(delayedAndRefusedSteps);
  RUN(slotsThatAreNotEmptiedHoldTheProxyBack);
  RUN(oneMemberWithoutANetworkLeavesNobodyAGroup);
  RUN(aMemberWhoseConnectFailsHasNone);
  RUN(aMemberThatCannotRegisterHasNone);
  RUN(nothingAgreedClosesTheGroup);
  RUN(aFailureInTheMiddleBreaksTheGroup);
  RUN(aMemberThatClosesBreaksTheOthers);
  RUN(aGroupIsClosedWithRequestsOpen);
  RUN(aGroupIsClosedBeforeItIsConnected);
  RUN(differentStepsBreakTheGroup);
  return isFine ? 0 : 1;
}
