// What an aggregator is sent and sends, byte by byte.
#pragma once
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include "aggregator/join.h"
#include "aggregator/server.h"
#include "expect.h"

namespace ncclrun::test {

inline aggregator::FrameHeader frame(aggregator::FrameKind kind, uint32_t bytes = 0) {
  aggregator::FrameHeader header;
  header.kind = kind;
  header.bytes = bytes;
  return header;
}
inline aggregator::FrameHeader contribution(uint32_t sequence, uint32_t bytes = 4) {
  aggregator::FrameHeader header = frame(aggregator::FrameKind::contribution, bytes);
  header.sequence = sequence;
  header.totalBytes = bytes;
  return header;
}

// A member whose bytes the test chooses.
struct Raw {
  aggregator::Server& server;
  Descriptor socket;
  std::string unsent;

  explicit Raw(aggregator::Server& at) : server(at) {
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    socket.reset(ends[0]);
    server.adopt(Descriptor(ends[1]), "here");
  }
  // The other side of a connection that the aggregator has made.
  Raw(aggregator::Server& at, Descriptor accepted) : server(at), socket(std::move(accepted)) {}
  Raw& add(const aggregator::FrameHeader& header, const std::string& payload = "") {
    unsent.append(reinterpret_cast<const char*>(&header), sizeof header).append(payload);
    return *this;
  }
  Raw& addJoin(const aggregator::JoinRequest& request) {
    const std::vector<std::byte> bytes = aggregator::encodeJoin(request);
    return add(frame(aggregator::FrameKind::join, uint32_t(bytes.size())),
               std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  // Of a group that this aggregator serves alone.
  Raw& addJoin(uint32_t rank, uint32_t size, uint32_t version = aggregator::kProtocolVersion) {
    aggregator::JoinRequest request;
    request.join.version = version;
    request.join.child = rank;
    request.join.members = size;
    request.join.fanIn = aggregator::kMaxMembers;
    return addJoin(request);
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
  bool take(aggregator::FrameHeader& header, std::string& payload) {
    serve();
    do {
      const ssize_t got = recv(socket.get(), &header, sizeof header, MSG_DONTWAIT);
      isClosed = got == 0 || (got < 0 && errno == ECONNRESET);
      if (got != ssize_t(sizeof header)) return false;
    } while (header.kind == aggregator::FrameKind::heartbeat);
    payload.resize(header.bytes);
    EXPECT(payload.empty() ||
           recv(socket.get(), payload.data(), payload.size(), MSG_DONTWAIT) == ssize_t(payload.size()));
    return true;
  }
  void expectFrame(aggregator::FrameKind kind, const std::string& words = "") {
    aggregator::FrameHeader header;
    std::string payload;
    EXPECT(take(header, payload) && header.kind == kind);
    if (payload.find(words) == std::string::npos) failTest(__FILE__, __LINE__, payload + " has no " + words);
  }
  void expectNothing() {
    aggregator::FrameHeader header;
    std::string payload;
    EXPECT(!take(header, payload) && !isClosed);
  }
  void expectClosed() {
    aggregator::FrameHeader header;
    std::string payload;
    EXPECT(!take(header, payload) && isClosed);
  }
  bool isClosed = false;
};

}  // namespace ncclrun::test
