// What a socket backend sends: the handshake that proves to both sides that the other knows the communicator's token,
// and the header in front of each chunk of a message. Little-endian; sizes are asserted.
//
//   connector → acceptor   Hello      which listener is meant, which of the connection's sockets this is, a nonce
//   acceptor → connector   Challenge  a nonce, and its proof: HMAC(token, "accept" nonces hello)
//   connector → acceptor   Proof      HMAC(token, "connect" nonces hello)
//   acceptor → connector   kAdmitted  one byte: from here on the connection is the listener's
//   connector → acceptor   chunks
//   acceptor → connector   chunks of the connection of the other direction, if both carry their messages together
//
// The token itself never travels. An acceptor closes a connection with a wrong hello or proof without a word.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sha256.h"

namespace ncclrun::net {

inline constexpr uint32_t kHelloMagic = 0x544e434e;  // "NCNT"
inline constexpr uint16_t kWireVersion = 2;
inline constexpr uint32_t kMaxSockets = 64;  // of one connection

using Token = std::array<uint8_t, 16>;
using Nonce = std::array<uint8_t, 16>;

struct Hello {
  uint32_t magic = kHelloMagic;
  uint16_t version = kWireVersion;
  uint16_t socket = 0;      // index of this socket in the connection
  uint64_t listener = 0;    // from the handle
  uint64_t connection = 0;  // random; the same for all sockets of the connection
  uint16_t sockets = 1;     // of the connection
  uint16_t reserved[3] = {};
  Nonce nonce = {};
};
static_assert(sizeof(Hello) == 48);

struct Challenge {
  Nonce nonce = {};
  Sha256Digest proof = {};
};
static_assert(sizeof(Challenge) == 48);

inline constexpr uint8_t kAdmitted = 0x06;

enum class ProofOf : uint8_t { accept = 'A', connect = 'C' };
Sha256Digest proofOf(ProofOf side, const Token& token, const Hello& hello, const Nonce& acceptor);
// A number that whoever knows the token knows too, and nobody else; one for each purpose.
uint64_t derivedNumber(const Token& token, std::span<const uint8_t> purpose);
// From the system's random numbers; false if it has none.
bool fillRandom(void* bytes, size_t count);

// A message travels in one chunk or several, each over any socket of the connection.
struct ChunkHeader {
  uint32_t magic = 0;
  uint32_t sequence = 0;  // of the message on the connection, from 0, modulo 2^32
  int32_t tag = 0;
  uint32_t bytes = 0;         // of this chunk
  uint64_t offset = 0;        // of this chunk in the message
  uint64_t messageBytes = 0;  // of the whole message
};
static_assert(sizeof(ChunkHeader) == 32);
inline constexpr uint32_t kChunkMagic = 0x4b434e4e;  // "NNCK"

// Two connections, one for each direction between two processes, may carry their small messages over one socket, that
// of the connection with the lower number (Hello::connection): an acknowledgement rides on the answer then. The side
// that has opened it offers it; the other one's sender turns from its own socket to that one and back, and its receiver
// with it. These are headers alone, with this magic.
inline constexpr uint32_t kOfferMagic = 0x4f434e4e;  // "NNCO"; offset: number of the connection that may send here too
inline constexpr uint32_t kTurnMagic = 0x54434e4e;   // "NNCT": the connection goes on over its other socket

}  // namespace ncclrun::net
