// What aggregators of a tree may send each other: the parent of a leaf, or, with the highest bit of the first byte, a
// child of the root. The other bits choose how far the group has come.
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "aggregator/server.h"

using namespace ncclrun;
using aggregator::FrameHeader;
using aggregator::FrameKind;

namespace {

// The test's side of a connection.
struct Side {
  Descriptor socket;

  void write(const void* data, size_t bytes) const {
    if (socket.valid()) (void)send(socket.get(), data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void frame(FrameKind kind) const {
    FrameHeader header;
    header.kind = kind;
    write(&header, sizeof header);
  }
  // Four members with a fan-in of two.
  void join(uint32_t level, uint32_t child) const {
    aggregator::JoinRequest request;
    request.join.members = 4;
    request.join.level = level;
    request.join.child = child;
    if (level == 0) request.above = {net::encodeHandle({*net::parseAddress("10.0.0.9"), 1})};
    const std::vector<std::byte> bytes = aggregator::encodeJoin(request);
    FrameHeader header;
    header.kind = FrameKind::join;
    header.bytes = uint32_t(bytes.size());
    write(&header, sizeof header);
    write(bytes.data(), bytes.size());
  }
  void contribute() const {
    FrameHeader header;
    header.kind = FrameKind::contribution;
    header.bytes = 4;
    header.totalBytes = 4;
    write(&header, sizeof header);
    write("abcd", 4);
  }
  // Takes what the server has sent, so that its buffer does not fill.
  void drain() const {
    char piece[4096];
    while (socket.valid() && recv(socket.get(), piece, sizeof piece, MSG_DONTWAIT) > 0) {
    }
  }
};

Descriptor pairWith(Descriptor& other) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  other.reset(ends[1]);
  return Descriptor(ends[0]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t stage = data[0];
  const bool isRoot = (stage & 0x80) != 0;
  Side first, second, parent;
  const auto dial = [&](const net::ListenerAddress&) -> aggregator::Connecting {
    return [&](Descriptor& out) {
      out = pairWith(parent.socket);
      return Status{};
    };
  };
  std::unique_ptr<aggregator::Server> server;
  if (!aggregator::Server::make({}, dial, server).ok()) return 0;
  const auto serve = [&] {
    for (int i = 0; i < 3; i++) {
      if (!server->poll(0).ok()) std::abort();
      for (const Side* const side : {&first, &second, &parent}) side->drain();
    }
  };
  for (Side* const side : {&first, &second}) {
    Descriptor served;
    side->socket = pairWith(served);
    server->adopt(std::move(served), "here");
  }
  first.join(isRoot ? 1 : 0, 0);
  if ((stage & 1) != 0) second.join(isRoot ? 1 : 0, 1);
  serve();
  if (isRoot) first.frame(FrameKind::joined);
  if (!isRoot && (stage & 2) != 0) parent.frame(FrameKind::joined);
  if (isRoot && (stage & 2) != 0) second.frame(FrameKind::joined);
  serve();
  if ((stage & 4) != 0) first.contribute();
  if (!isRoot && (stage & 4) != 0) second.contribute();
  serve();
  const Side& fuzzed = isRoot ? second : parent;
  // In pieces, as a network cuts them.
  for (size_t at = 1; at < size;) {
    const size_t piece = std::min<size_t>(size - at, 1 + data[at] * size_t((stage & 0x7f) >> 3));
    fuzzed.write(data + at, piece);
    at += piece;
    serve();
  }
  first.contribute();
  serve();
  for (Side* const side : {&first, &second, &parent}) side->socket.reset();
  for (int i = 0; i < 6; i++) (void)server->poll(0);
  if (server->figures().members != 0 || server->figures().chunkBytes != 0) std::abort();
  return 0;
}
