#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "binding/connection.h"

using ncclrun::Descriptor;
using ncclrun::binding::Connection;
using ncclrun::binding::ProcessLife;
using ncclrun::binding::ServerEvent;
using ncclrun::binding::ServerEvents;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) abort();
  const ssize_t sent = send(ends[1], data, size, MSG_DONTWAIT);
  Descriptor peer(ends[1]);
  peer.reset();
  constexpr size_t kMaxPayloadBytes = 1024;
  constexpr int kMaxReads = 1000;
  ServerEvents events([] {});
  Connection connection(7, Descriptor(ends[0]), ProcessLife::ofChild(getpid()), 0, kMaxPayloadBytes, events);
  // A read takes a bounded number of pieces, lest others wait.
  for (int reads = 0; reads < kMaxReads && connection.socket() >= 0; ++reads) connection.read();
  if (connection.socket() >= 0) abort();  // the stream had an end

  bool resume = false;
  size_t taken = 0;
  size_t closed = 0;
  for (ServerEvent event; events.take(event, resume);) {
    if (closed > 0 || event.connection != 7 || event.payload.size() > kMaxPayloadBytes) abort();
    if (event.type == ServerEvent::Type::closed) ++closed;
    if (event.type == ServerEvent::Type::frame) taken += sizeof event.header + event.payload.size();
  }
  if (closed != 1 || (sent >= 0 && taken > static_cast<size_t>(sent))) abort();
  return 0;
}
