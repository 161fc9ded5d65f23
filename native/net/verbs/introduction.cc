#include "net/verbs/introduction.h"

#include <cstring>

namespace ncclrun::net {
namespace {

constexpr uint8_t kGreatestMtu = 5;

bool isInRange(const Introduction& one) {
  const uint8_t layer = one.port.linkLayer;
  return one.queuePairs >= 1 && one.queuePairs <= kMaxQueuePairs && one.port.mtu >= 1 && one.port.mtu <= kGreatestMtu &&
         (layer == 1 || layer == 2) && one.where.back() == '\0';
}

}  // namespace

std::optional<Introduction> readIntroduction(std::span<const std::byte> bytes, std::string& why) {
  Introduction read;
  if (bytes.size() == sizeof read) std::memcpy(&read, bytes.data(), sizeof read);
  if (bytes.size() != sizeof read || read.magic != kIntroductionMagic || read.version != kVerbsWireVersion) {
    why = "the other side's introduction is not one of this protocol: do all hosts have the same version?";
    return {};
  }
  if (isInRange(read)) return read;
  why = "the other side's introduction is not valid";
  return {};
}

std::optional<Move> readMove(std::span<const std::byte> bytes, uint32_t devices, uint32_t most, std::string& why) {
  Move read;
  if (bytes.size() != sizeof read) {
    why = "the other side's move is not one of this protocol";
    return {};
  }
  std::memcpy(&read, bytes.data(), sizeof read);
  if (!readIntroduction(std::as_bytes(std::span(&read.introduction, 1)), why).has_value()) return {};
  if (read.device < devices && read.number >= 1 && read.number <= most) return read;
  why = "the other side moves to a port that does not exist";
  return {};
}

}  // namespace ncclrun::net
