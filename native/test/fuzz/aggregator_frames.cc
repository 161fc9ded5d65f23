// What a member may send an aggregator after the handshake: joins, contributions and whatever else, beside a member
// that keeps to the protocol. The first byte chooses how far the two have come.
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "aggregator/server.h"

using namespace ncclrun;
using aggregator::FrameHeader;
using aggregator::FrameKind;
using aggregator::Join;

namespace {

constexpr size_t kLimit = 1 << 20;

struct Side {
  Descriptor socket;

  explicit Side(aggregator::Server& server) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    socket.reset(ends[0]);
    server.adopt(Descriptor(ends[1]), "here");
  }
  void write(const void* data, size_t bytes) const {
    (void)send(socket.get(), data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void join(uint32_t rank) const {
    FrameHeader header;
    header.kind = FrameKind::join;
    header.bytes = sizeof(Join);
    Join join;
    join.child = rank;
    join.members = 2;
    write(&header, sizeof header);
    write(&join, sizeof join);
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
    while (recv(socket.get(), piece, sizeof piece, MSG_DONTWAIT) > 0) {
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::unique_ptr<aggregator::Server> server;
  if (!aggregator::Server::make({.memoryBytes = kLimit}, nullptr, server).ok()) return 0;
  const uint8_t stage = data[0];
  {
    const Side sound(*server), fuzzed(*server);
    const auto serve = [&] {
      for (int i = 0; i < 3; i++) {
        if (!server->poll(0).ok()) std::abort();
        sound.drain();
        fuzzed.drain();
      }
    };
    if ((stage & 1) != 0) sound.join(0);
    if ((stage & 2) != 0) fuzzed.join(1);
    serve();
    if ((stage & 4) != 0) sound.contribute();
    // In pieces, as a network cuts them.
    for (size_t at = 1; at < size;) {
      const size_t piece = std::min<size_t>(size - at, 1 + data[at] * size_t(stage >> 3));
      fuzzed.write(data + at, piece);
      at += piece;
      serve();
    }
    if ((stage & 4) == 0) sound.contribute();
    serve();
    if (server->figures().chunkBytes > kLimit + 4 * aggregator::kChunkBytes) std::abort();
  }
  for (int i = 0; i < 6; i++) (void)server->poll(0);
  if (server->figures().members != 0 || server->figures().chunkBytes != 0) std::abort();
  return 0;
}
