// What two ranks of a communicator say to each other beside their data: out-of-band messages. Little-endian.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "net/net.h"

namespace ncclrun::net {

enum class OobKind : uint32_t {
  introduction = 1,  // who sends on this socket, and the network of its data; the first message of each direction
  request = 2,       // this rank wants to send on `channel`: the other one is to offer its handle
  offer = 3,         // `handle` of the listener for what the other rank sends on `channel`
  heartbeat = 4,
  goodbye = 5,   // this rank has left the communicator
  end = 6,       // this rank has sent its last message on `channel`
  endTaken = 7,  // that message has arrived: the other rank may close the connection, where it leaves no open receives
  call = 8,      // of ranks on GPUs: this rank has called the collective `call`
  stop = 9,      // as goodbye, which follows: the other rank is to send its last message on `channel` before
  groupOffer = 10,  // `handle` at which this rank waits for the group of its rail, which the network reduces
  noGroup = 11,     // this rank has no such group
};
inline constexpr OobKind kLastOobKind = OobKind::noGroup;

inline constexpr size_t kCallBytes = 40;

// Fields that the kind does not need are 0.
struct OobMessage {
  OobKind kind = OobKind::heartbeat;
  uint32_t from = 0;     // rank
  uint32_t channel = 0;  // of a request, an offer and what follows it
  // Of a goodbye or a stop: the ncclResult_t with which waits for this rank end; success: it left in order.
  uint32_t result = 0;
  // Of a heartbeat: 1 if a debugger traces this rank, which may then be silent for as long as its user likes.
  uint32_t isTraced = 0;
  uint32_t openReceives = 0;        // of endTaken: receives that are still open, to be filled by empty messages
  uint64_t collectives = 0;         // of a goodbye in order: as Doorbell::left has it; 0: not said
  uint64_t timeoutNanoseconds = 0;  // of an introduction: the sender's timeout, in which it sends several heartbeats
  Handle handle = {};               // of an offer or a groupOffer
  std::array<std::byte, kCallBytes> call = {};  // of a call: a StepCall
  std::array<char, 64> network = {};            // of an introduction: name of the sender's network; NUL-terminated
  // Of a goodbye: how the ranks' calls differ, or which error was the reason; NUL-terminated.
  std::array<char, 368> sentence = {};
};
static_assert(sizeof(OobMessage) == 640);

}  // namespace ncclrun::net
