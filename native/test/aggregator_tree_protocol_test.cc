// Aggregators in a tree, byte by byte: what a leaf exchanges with its parent, and a parent with its children.
#include "net/raw_member.h"
#include "net/socket/address.h"

using namespace ncclrun::test;
using ncclrun::Descriptor;
using ncclrun::Status;
using ncclrun::aggregator::Connecting;
using ncclrun::aggregator::FrameHeader;
using ncclrun::aggregator::FrameKind;
using ncclrun::aggregator::JoinRequest;
using ncclrun::aggregator::Server;
using ncclrun::net::Handle;
using ncclrun::net::ListenerAddress;

namespace {

Handle handleOf(const char* address) { return ncclrun::net::encodeHandle({*ncclrun::net::parseAddress(address), 5}); }

// Four members with a fan-in of two: two leaves and a root.
JoinRequest joinOf(uint32_t level, uint32_t node, uint32_t child) {
  JoinRequest request;
  request.join.members = 4;
  request.join.fanIn = 2;
  request.join.level = level;
  request.join.node = node;
  request.join.child = child;
  if (level == 0) request.above = {handleOf("10.0.0.9")};
  return request;
}

// An aggregator that serves the second leaf, ranks 2 and 3; the test is its parent.
struct Leaf {
  Descriptor accepted;  // the parent's side
  std::string dialled;
  std::unique_ptr<Server> server = [this] {
    std::unique_ptr<Server> made;
    const auto dial = [this](const ListenerAddress& where) -> Connecting {
      dialled = where.address.text() + " " + std::to_string(where.listener);
      return [this](Descriptor& out) {
        int ends[2];
        EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        out.reset(ends[0]);
        accepted.reset(ends[1]);
        return Status{};
      };
    };
    EXPECT(Server::make({}, dial, made).ok());
    return made;
  }();
  Raw first{*server}, second{*server};
  std::unique_ptr<Raw> parent;

  void join() {
    first.addJoin(joinOf(0, 1, 0)).send();
    parent = std::make_unique<Raw>(*server, std::move(accepted));
    parent->expectFrame(FrameKind::join);
    parent->expectNothing();
    second.addJoin(joinOf(0, 1, 1)).send();
    parent->expectFrame(FrameKind::joined);
    first.expectNothing();
  }
  void open() {
    join();
    parent->add(frame(FrameKind::joined)).send();
    first.expectFrame(FrameKind::joined);
    second.expectFrame(FrameKind::joined);
  }
  void contribute() {
    first.add(contribution(0), "aaaa").send();
    parent->expectNothing();
    second.add(contribution(0), "\1\1\1\1").send();
    parent->expectFrame(FrameKind::contribution, "bbbb");
    first.expectNothing();
  }
};

FrameHeader result(uint32_t sequence) {
  FrameHeader header = contribution(sequence);
  header.kind = FrameKind::result;
  return header;
}

void aLeafJoinsItsParentAsOneMember() {
  Leaf leaf;
  leaf.first.addJoin(joinOf(0, 1, 0)).send();
  EXPECT(leaf.dialled == "10.0.0.9 5");
  leaf.parent = std::make_unique<Raw>(*leaf.server, std::move(leaf.accepted));
  FrameHeader header;
  std::string payload;
  EXPECT(leaf.parent->take(header, payload));
  JoinRequest request;
  EXPECT(decodeJoin(std::as_bytes(std::span(payload)), request));
  EXPECT(request.join.level == 1 && request.join.node == 0 && request.join.child == 1 && request.join.members == 4);
  EXPECT(request.above.empty());
}
void whatALeafHasReducedGoesUpAndTheResultComesDown() {
  Leaf leaf;
  leaf.open();
  leaf.contribute();
  leaf.parent->add(result(0), "zzzz").send();
  leaf.first.expectFrame(FrameKind::result, "zzzz");
  leaf.second.expectFrame(FrameKind::result, "zzzz");
  leaf.first.add(frame(FrameKind::leave)).send();
  leaf.parent->expectFrame(FrameKind::leave);
  leaf.second.add(frame(FrameKind::leave)).send();
  leaf.parent->expectNothing();
}
void aFailureOfTheParentIsToldInItsWords() {
  Leaf leaf;
  leaf.open();
  leaf.contribute();
  FrameHeader failed = frame(FrameKind::failed, 4);
  failed.result = uint8_t(ncclInvalidUsage);
  leaf.parent->add(failed, "oops").send();
  leaf.first.expectFrame(FrameKind::failed, "oops");
  leaf.second.expectFrame(FrameKind::failed, "oops");
  leaf.parent->expectClosed();
}
void aLostMemberIsReportedToTheParent() {
  Leaf leaf;
  leaf.open();
  leaf.contribute();
  leaf.first.socket.reset();
  leaf.parent->expectFrame(FrameKind::failed, "rank 2 (here) is lost");
  leaf.second.expectFrame(FrameKind::failed, "rank 2 (here) is lost");
  // What the parent had on its way is discarded.
  leaf.parent->add(result(0), "zzzz").send();
  leaf.second.expectNothing();
  leaf.parent->add(frame(FrameKind::failed, 4), "same").send();
  leaf.parent->expectClosed();
}
void aLostParentEndsTheGroup() {
  Leaf leaf;
  leaf.open();
  leaf.contribute();
  leaf.parent->socket.reset();
  leaf.first.expectFrame(FrameKind::failed,
                         "the aggregator at 10.0.0.9 port 0, which reduces for ranks 0 to 3, is lost: ");
}

void expectParentViolation(bool hasContributed, const FrameHeader& header, const std::string& payload) {
  Leaf leaf;
  leaf.open();
  if (hasContributed) leaf.contribute();
  leaf.parent->add(header, payload).send();
  leaf.first.expectFrame(FrameKind::failed, "is lost: it sends what this protocol does not have");
  leaf.parent->expectClosed();
}
void unsoundFramesOfAParentEndTheGroup() {
  expectParentViolation(false, result(0), "zzzz");
  expectParentViolation(true, result(1), "zzzz");
  expectParentViolation(true, contribution(0), "zzzz");
  FrameHeader header = result(0);
  header.bytes = 8;
  expectParentViolation(true, header, "zzzzzzzz");
  header = result(0);
  header.magic = 1;
  expectParentViolation(true, header, "zzzz");
  expectParentViolation(false, frame(FrameKind::joined), "");
  expectParentViolation(false, frame(FrameKind::leave), "");
  expectParentViolation(false, frame(FrameKind::failed), "");
  expectParentViolation(false, frame(FrameKind::failed, 1025), std::string(1025, 'a'));
  expectParentViolation(false, frame(FrameKind::heartbeat, 4), "aaaa");
}
void aParentThatOpensTooEarlyEndsTheGroup() {
  Leaf leaf;
  leaf.first.addJoin(joinOf(0, 1, 0)).send();
  leaf.parent = std::make_unique<Raw>(*leaf.server, std::move(leaf.accepted));
  leaf.parent->add(frame(FrameKind::joined)).send();
  leaf.first.expectFrame(FrameKind::failed, "sends what this protocol does not have");
}

// The root, whose children are the test's.
struct Root {
  std::unique_ptr<Server> server = [] {
    std::unique_ptr<Server> made;
    EXPECT(Server::make({}, nullptr, made).ok());
    return made;
  }();
  Raw first{*server}, second{*server};

  void open() {
    first.addJoin(joinOf(1, 0, 0)).send();
    second.addJoin(joinOf(1, 0, 1)).add(frame(FrameKind::joined)).send();
    first.expectNothing();
    first.add(frame(FrameKind::joined)).send();
    first.expectFrame(FrameKind::joined);
    second.expectFrame(FrameKind::joined);
  }
};
void aFailureOfAChildIsToldInItsWords() {
  Root root;
  root.open();
  FrameHeader failed = frame(FrameKind::failed, 4);
  failed.result = uint8_t(ncclRemoteError);
  root.first.add(failed, "oops").send();
  root.second.expectFrame(FrameKind::failed, "oops");
  root.first.expectFrame(FrameKind::failed, "oops");
}
void aLostChildIsNamedByItsRanks() {
  Root root;
  root.open();
  root.second.socket.reset();
  root.first.expectFrame(FrameKind::failed, "the aggregator of ranks 2 to 3 (here) is lost: ");
}
void whoHasLeftBelowAChildIsNamed() {
  Root root;
  root.open();
  FrameHeader leave = frame(FrameKind::leave);
  leave.sequence = 3;
  root.second.add(leave).send();
  root.first.add(contribution(0), "aaaa").send();
  root.first.expectFrame(FrameKind::failed, "rank 3 (of the aggregator at here) has left the group");
}
// A child that says so twice counts once.
void aChildIsReadyOnce() {
  Root root;
  root.first.addJoin(joinOf(1, 0, 0)).add(frame(FrameKind::joined)).add(frame(FrameKind::joined)).send();
  root.second.addJoin(joinOf(1, 0, 1)).send();
  root.first.expectNothing();
}
void childrenThatNameOtherAggregatorsEndTheGroup() {
  Leaf leaf;
  leaf.first.addJoin(joinOf(0, 1, 0)).send();
  JoinRequest other = joinOf(0, 1, 1);
  other.above = {handleOf("10.0.0.8")};
  leaf.second.addJoin(other).send();
  leaf.second.expectFrame(FrameKind::failed, "rank 3 (here) joins a group of other aggregators than the others");
  leaf.first.expectFrame(FrameKind::failed, "joins a group of other aggregators");
}
void joinsOfNoTreeAreNotAnswered() {
  const auto refuse = [](const JoinRequest& request) {
    Leaf leaf;
    leaf.first.addJoin(request).send();
    leaf.first.expectClosed();
    EXPECT(leaf.server->figures().groups == 0 && leaf.dialled.empty());
  };
  refuse(joinOf(0, 2, 0));
  refuse(joinOf(0, 0, 2));
  refuse(joinOf(2, 0, 0));
  JoinRequest request = joinOf(0, 0, 0);
  request.above.push_back(request.above[0]);
  refuse(request);
  request.above.clear();
  refuse(request);
  request.above = {Handle{}};
  refuse(request);
  request = joinOf(0, 0, 0);
  request.join.fanIn = 1;
  refuse(request);
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(aLeafJoinsItsParentAsOneMember);
  RUN(whatALeafHasReducedGoesUpAndTheResultComesDown);
  RUN(aFailureOfTheParentIsToldInItsWords);
  RUN(aLostMemberIsReportedToTheParent);
  RUN(aLostParentEndsTheGroup);
  RUN(unsoundFramesOfAParentEndTheGroup);
  RUN(aParentThatOpensTooEarlyEndsTheGroup);
  RUN(aFailureOfAChildIsToldInItsWords);
  RUN(aLostChildIsNamedByItsRanks);
  RUN(whoHasLeftBelowAChildIsNamed);
  RUN(aChildIsReadyOnce);
  RUN(childrenThatNameOtherAggregatorsEndTheGroup);
  RUN(joinsOfNoTreeAreNotAnswered);
  return isFine ? 0 : 1;
}
