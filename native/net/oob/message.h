// What two ranks of a communicator say to each other beside their data: out-of-band messages. Little-endian.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "net/net.h"

namespace ncclrun::net {

enum class OobKind : uint32_t {
  introduction = 1,  // who sends on this socket, and the network of its data
  request = 2,       // this rank wants to send on `channel`: the other one is to offer its handle
  offer = 3,         // `handle` of the listener for what the other rank sends on `channel`
  heartbeat = 4,
  goodbye = 5,   // this rank has left the communicator
  end = 6,       // this rank has sent its last message on `channel`
  endTaken = 7,  // that message has arrived: the other rank may close the connection, where it leaves no open receives
  call = 8,      // of ranks on GPUs: the StepCall of a collective that this rank has called, in `handle`
  stop = 9,      // as goodbye, which follows: the other rank is to send its last message on `channel` before
};
inline constexpr OobKind kLastOobKind = OobKind::stop;

struct OobMessage {
  OobKind kind = OobKind::heartbeat;
  uint32_t from = 0;  // rank
  uint32_t channel = 0;
  // Of a goodbye or a stop: the ncclResult_t with which waits for this rank end; success: it left in order. Of a
  // heartbeat: 1 if a debugger traces this rank, which may then be silent for as long as its user likes.
  uint32_t result = 0;
  // Of a goodbye in order: as Doorbell::left has it; 0: not said. Of an introduction: the sender's timeout in
  // nanoseconds, in which it sends several heartbeats. Of endTaken: receives that are still open, to be filled by empty
  // messages.
  uint64_t collectives = 0;
  Handle handle = {};
  // NUL-terminated. Of a goodbye: how the ranks' calls differ, or which error was the reason; of an introduction: the
  // network that carries its data. An introduction is the first message of each direction of a socket.
  std::array<char, 360> sentence = {};
};
static_assert(sizeof(OobMessage) == 512);

}  // namespace ncclrun::net
