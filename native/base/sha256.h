// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104): what two sides of a connection prove to each other that they know
// the same token with.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ncclrun {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void update(std::span<const uint8_t> bytes);
  // Ends the message; the object is not used afterwards.
  Sha256Digest finish();

 private:
  static constexpr size_t kBlockBytes = 64;
  void compress(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, kBlockBytes> block_ = {};
  size_t filled_ = 0;   // bytes of block_
  uint64_t bytes_ = 0;  // of the message so far
};

// key: at most 64 bytes.
Sha256Digest hmacSha256(std::span<const uint8_t> key, std::span<const uint8_t> message);

// In a time that does not depend on where they differ.
bool equalDigests(const Sha256Digest& a, const Sha256Digest& b);

}  // namespace ncclrun
