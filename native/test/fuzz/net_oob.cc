// What another rank may send over an out-of-band socket: introductions, offers, goodbyes, in any order and number.
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "net/oob/oob_socket.h"

using namespace ncclrun;

namespace {

constexpr uint32_t kRanks = 4;

// What the transport relies on.
bool isSound(const net::OobMessage& message, uint32_t peer) {
  return message.from == peer && peer < kRanks && message.kind >= net::OobKind::introduction &&
         message.kind <= net::kLastOobKind && memchr(message.network.data(), '\0', message.network.size()) != nullptr &&
         memchr(message.sentence.data(), '\0', message.sentence.size()) != nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 0;
  Descriptor sending(ends[0]);
  net::OobSocket socket(Descriptor(ends[1]), net::OobSocket::kUnknown);
  std::vector<net::OobMessage> messages;
  std::string why;
  bool isAlive = true;
  // In pieces, as a network cuts them.
  for (size_t at = 0; at < size && isAlive;) {
    const size_t piece = std::min<size_t>(size - at, 300 + data[at]);
    if (send(sending.get(), data + at, piece, MSG_NOSIGNAL | MSG_DONTWAIT) != ssize_t(piece)) break;
    at += piece;
    isAlive = socket.receive(kRanks, messages, why);
  }
  for (const net::OobMessage& message : messages) {
    if (!isSound(message, socket.peer())) std::abort();
  }
  if (!isAlive && why.empty()) std::abort();
  return 0;
}
