#include "net/socket/wire.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace ncclrun::net {

Sha256Digest proofOf(ProofOf side, const Token& token, const Hello& hello, const Nonce& acceptor) {
  std::array<uint8_t, 1 + sizeof(Hello) + sizeof(Nonce)> message;
  message[0] = uint8_t(side);
  std::memcpy(message.data() + 1, &hello, sizeof hello);
  std::memcpy(message.data() + 1 + sizeof hello, acceptor.data(), acceptor.size());
  return hmacSha256(token, message);
}

uint64_t derivedNumber(const Token& token, std::span<const uint8_t> purpose) {
  const Sha256Digest digest = hmacSha256(token, purpose);
  uint64_t number = 0;
  std::memcpy(&number, digest.data(), sizeof number);
  return number;
}

bool fillRandom(void* bytes, size_t count) {
  size_t done = 0;
  while (done < count) {
    const ssize_t got = getrandom(static_cast<char*>(bytes) + done, count - done, 0);
    if (got < 0 && errno != EINTR) return false;
    if (got > 0) done += size_t(got);
  }
  return true;
}

}  // namespace ncclrun::net
