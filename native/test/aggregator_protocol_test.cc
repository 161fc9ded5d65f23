// Members that do not keep to the aggregator's protocol, or keep to it in unusual ways, byte by byte.
#include "net/raw_member.h"

using namespace ncclrun::test;
using ncclrun::aggregator::FrameHeader;
using ncclrun::aggregator::FrameKind;
using ncclrun::aggregator::Join;
using ncclrun::aggregator::kChunkBytes;
using ncclrun::aggregator::Server;

namespace {

struct Two {
  std::unique_ptr<Server> server = [] {
    std::unique_ptr<Server> made;
    EXPECT(Server::make({}, nullptr, made).ok());
    return made;
  }();
  Raw first{*server}, second{*server};

  void join() {
    first.addJoin(0, 2).send();
    first.expectNothing();
    second.addJoin(1, 2).send();
    first.expectFrame(FrameKind::joined);
    second.expectFrame(FrameKind::joined);
  }
};

void resultsComeInTheOrderOfTheContributions() {
  Two two;
  two.join();
  two.first.add(contribution(0), "aaaa").add(contribution(1), "bbbb").send();
  two.first.expectNothing();
  two.second.add(contribution(0), "\1\1\1\1").add(contribution(1), "\2\2\2\2").send();
  for (Raw* const each : {&two.first, &two.second}) {
    each->expectFrame(FrameKind::result, "bbbb");
    each->expectFrame(FrameKind::result, "dddd");
    each->expectNothing();
  }
}

// As many frames as are handled in one turn, and one more that came with the last one's payload.
void theLastFrameOfABurstIsHandled() {
  Two two;
  two.join();
  for (int i = 0; i < 15; i++) two.first.add(frame(FrameKind::heartbeat));
  two.first.add(contribution(0), "aaaa").add(frame(FrameKind::leave)).send();
  two.second.add(contribution(0), "\1\1\1\1").add(contribution(1), "\1\1\1\1").send();
  two.second.expectFrame(FrameKind::result, "bbbb");
  two.second.expectFrame(FrameKind::failed, "rank 0 (here) has left the group");
}

// What the first member sends ends the group, for both; a violator's connection is read no more.
void expectViolation(const FrameHeader& header, const std::string& payload) {
  Two two;
  two.join();
  two.first.add(header, payload).send();
  two.second.expectFrame(FrameKind::failed, "rank 0 (here) ");
  two.second.add(contribution(0), "aaaa").send();
  two.second.expectNothing();
}
void unsoundFramesEndTheGroup() {
  FrameHeader header = contribution(0);
  header.type = 12;
  expectViolation(header, "aaaa");
  header = contribution(0);
  header.op = 5;
  expectViolation(header, "aaaa");
  header = contribution(0);
  header.totalBytes = 5;  // more than the chunk has
  expectViolation(header, "aaaa");
  header = contribution(0);
  header.offset = 4;
  expectViolation(header, "aaaa");
  header = contribution(0, 3);
  header.type = 2;  // elements of 4 bytes
  expectViolation(header, "aaa");
  expectViolation(contribution(0, kChunkBytes + 1), "aaaa");
  expectViolation(contribution(0, 0), "");
  header = contribution(0);
  header.magic = 1;
  expectViolation(header, "aaaa");
  expectViolation(frame(FrameKind::result), "");
  expectViolation(frame(FrameKind::joined), "");
  expectViolation(frame(FrameKind::failed, 4), "aaaa");
  expectViolation(frame(FrameKind::join, sizeof(Join)), std::string(sizeof(Join), '\0'));
  header = frame(FrameKind::leave, 4);
  expectViolation(header, "aaaa");
}

void nineChunksExceedTheWindow() {
  Two two;
  two.join();
  for (uint32_t i = 0; i < 8; i++) two.first.add(contribution(i), "aaaa");
  two.first.send();
  two.second.expectNothing();
  two.first.add(contribution(8), "aaaa").send();
  two.second.expectFrame(FrameKind::failed, "rank 0 (here) sends what this protocol does not have");
}

void contributionsBeforeAllHaveJoinedEndTheGroup() {
  Two two;
  two.first.addJoin(0, 2).add(contribution(0), "aaaa").send();
  two.second.addJoin(1, 2).send();
  two.second.expectFrame(FrameKind::failed, "rank 0 (here) sends what this protocol does not have");
}

void joinsThatContradictEachOtherEndTheGroup() {
  Two two;
  two.first.addJoin(0, 2).send();
  two.second.addJoin(1, 3).send();
  two.first.expectFrame(FrameKind::failed, "joins a group of 3, which the others say has 2 members");
  two.second.expectFrame(FrameKind::failed, "joins a group of 3");
  Two same;
  same.first.addJoin(1, 2).send();
  same.second.addJoin(1, 2).send();
  same.first.expectFrame(FrameKind::failed, "two members, here and here, join as rank 1");
  same.second.expectFrame(FrameKind::failed, "join as rank 1");
}

void joinsThatMakeNoSenseAreNotAnswered() {
  const auto refuse = [](uint32_t rank, uint32_t size, uint32_t version) {
    Two two;
    two.first.addJoin(rank, size, version).send();
    two.first.expectClosed();
    EXPECT(two.server->figures().groups == 0);
  };
  using ncclrun::aggregator::kMaxMembers, ncclrun::aggregator::kProtocolVersion;
  refuse(2, 2, kProtocolVersion);
  refuse(0, 0, kProtocolVersion);
  refuse(0, kMaxMembers + 1, kProtocolVersion);
  refuse(0, 2, kProtocolVersion - 1);
  refuse(0, 2, kProtocolVersion + 1);
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(resultsComeInTheOrderOfTheContributions);
  RUN(theLastFrameOfABurstIsHandled);
  RUN(unsoundFramesEndTheGroup);
  RUN(nineChunksExceedTheWindow);
  RUN(contributionsBeforeAllHaveJoinedEndTheGroup);
  RUN(joinsThatContradictEachOtherEndTheGroup);
  RUN(joinsThatMakeNoSenseAreNotAnswered);
  return isFine ? 0 : 1;
}
