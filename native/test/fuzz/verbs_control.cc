// What the other side of a connection over verbs may send over its control socket: introductions, moves, words.
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "net/verbs/control_socket.h"
#include "net/verbs/introduction.h"

using namespace ncclrun;

namespace {

constexpr uint32_t kDevices = 2, kMoves = 64;

// What a link relies on.
bool isSound(const net::Introduction& one) {
  return one.queuePairs >= 1 && one.queuePairs <= net::kMaxQueuePairs && one.port.mtu >= 1 && one.port.mtu <= 5 &&
         memchr(one.where.data(), '\0', one.where.size()) != nullptr;
}

void take(const net::ControlSocket::Message& message) {
  std::string why;
  if (message.body.size() > net::ControlSocket::kMaxBytes) std::abort();
  const auto introduction = net::readIntroduction(message.body, why);
  if (introduction.has_value() ? !isSound(*introduction) : why.empty()) std::abort();
  why.clear();
  const auto move = net::readMove(message.body, kDevices, kMoves, why);
  if (move.has_value() ? !isSound(move->introduction) || move->device >= kDevices : why.empty()) std::abort();
  if (move.has_value()) (void)move->progress.isComplete(move->progress.first + net::kGroupSlots - 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 0;
  Descriptor sending(ends[0]);
  net::ControlSocket socket{Descriptor(ends[1])};
  // In pieces, as a network cuts them.
  for (size_t at = 0; at < size && !socket.isGone();) {
    const size_t piece = std::min<size_t>(size - at, 200 + data[at]);
    if (send(sending.get(), data + at, piece, MSG_NOSIGNAL | MSG_DONTWAIT) != ssize_t(piece)) break;
    at += piece;
    while (const auto message = socket.receive()) take(*message);
  }
  return 0;
}
