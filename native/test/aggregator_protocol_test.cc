// Members that do not keep to the aggregator's protocol, or keep to it in unusual ways, byte by byte.
#include <sys/socket.h>

#include <cstring>

#include "aggregator/server.h"
#include "expect.h"

using ncclrun::Descriptor;
using ncclrun::aggregator::FrameHeader;
using ncclrun::aggregator::FrameKind;
using ncclrun::aggregator::Join;
using ncclrun::aggregator::kChunkBytes;
using ncclrun::aggregator::Server;

namespace {

FrameHeader frame(FrameKind kind, uint32_t bytes = 0) {
  FrameHeader header;
  header.kind = kind;
  header.bytes = bytes;
  return header;
}
FrameHeader contribution(uint32_t sequence, uint32_t bytes = 4) {
  FrameHeader header = frame(FrameKind::contribution, bytes);
  header.sequence = sequence;
  header.totalBytes = bytes;
  return header;
}

// A member whose bytes the test chooses.
struct Raw {
  Server& server;
  Descriptor socket;
  std::string unsent;

  explicit Raw(Server& at) : server(at) {
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    socket.reset(ends[0]);
    server.adopt(Descriptor(ends[1]), "here");
  }
  Raw& add(const FrameHeader& header, const std::string& payload = "") {
    unsent.append(reinterpret_cast<const char*>(&header), sizeof header).append(payload);
    return *this;
  }
  Raw& addJoin(uint32_t rank, uint32_t size, uint32_t version = ncclrun::aggregator::kProtocolVersion) {
    Join join;
    join.version = version;
    join.child = rank;
    join.members = size;
    join.fanIn = ncclrun::aggregator::kMaxMembers;
    return add(frame(FrameKind::join, sizeof join), std::string(reinterpret_cast<const char*>(&join), sizeof join));
  }
  // All at once, and serves it.
  void send() {
    EXPECT(::send(socket.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL) == ssize_t(unsent.size()));
    unsent.clear();
    serve();
  }
  void serve() const {
    for (int i = 0; i < 4; i++) EXPECT(server.poll(0).ok());
  }
  // The next frame but heartbeats that the aggregator has sent; false: it has sent none. A closed connection is
  // `isClosed`.
  bool take(FrameHeader& header, std::string& payload) {
    serve();
    do {
      const ssize_t got = recv(socket.get(), &header, sizeof header, MSG_DONTWAIT);
      isClosed = got == 0;
      if (got != ssize_t(sizeof header)) return false;
    } while (header.kind == FrameKind::heartbeat);
    payload.resize(header.bytes);
    EXPECT(payload.empty() ||
           recv(socket.get(), payload.data(), payload.size(), MSG_DONTWAIT) == ssize_t(payload.size()));
    return true;
  }
  void expectFrame(FrameKind kind, const std::string& words = "") {
    FrameHeader header;
    std::string payload;
    EXPECT(take(header, payload) && header.kind == kind);
    if (payload.find(words) == std::string::npos) failTest(__FILE__, __LINE__, payload + " has no " + words);
  }
  void expectNothing() {
    FrameHeader header;
    std::string payload;
    EXPECT(!take(header, payload) && !isClosed);
  }
  void expectClosed() {
    FrameHeader header;
    std::string payload;
    EXPECT(!take(header, payload) && isClosed);
  }
  bool isClosed = false;
};

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
