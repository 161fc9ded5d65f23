// What both sides of a connection over verbs tell each other over their authenticated socket before the first message,
// and where each lets the other write.
//
//   sender → receiver   introduction   its queue pairs, its port, and the area for advertisements
//   receiver → sender   introduction   as many queue pairs, its port, and the area for sizes
//   sender → receiver   ready          its queue pairs receive and send: advertisements may come
//
// When a path fails, each side stops its queue pairs, so that nothing more arrives by them, and makes new ones:
//
//   either → other      move           the new queue pairs; of the receiver also what has arrived
//   either → other      ready          the new queue pairs receive and send
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dl/verbs_types.h"
#include "net/verbs/tuning.h"

namespace ncclrun::net {

inline constexpr uint32_t kIntroductionMagic = 0x4249434e;  // "NCIB"
inline constexpr uint16_t kVerbsWireVersion = 1;

// Where a queue pair is reached, and how.
struct PortAddress {
  verbs::Gid gid = {};
  uint16_t lid = 0;
  uint8_t linkLayer = 0;  // 1: InfiniBand, 2: Ethernet
  uint8_t mtu = 0;        // 1: 256 bytes to 5: 4096
  uint8_t needsGrh = 0;   // InfiniBand: also inside a subnet
  std::array<uint8_t, 3> reserved = {};
};
static_assert(sizeof(PortAddress) == 24);

struct Introduction {
  uint32_t magic = kIntroductionMagic;
  uint16_t version = kVerbsWireVersion;
  uint16_t queuePairs = 0;  // the sender's wish; the receiver has as many
  uint32_t splits = 0;      // each message over all of them
  uint32_t firstPsn = 0;    // of the first queue pair's packets, of the next one the next number
  PortAddress port = {};
  uint64_t area = 0;  // where the other side may write
  uint32_t areaKey = 0;
  uint32_t reserved = 0;
  std::array<char, 64> where = {};  // "mlx5_0 port 1, GID fe80::1": for the other side's sentences
  std::array<uint32_t, kMaxQueuePairs> numbers = {};
};
static_assert(sizeof(Introduction) == 120 + 4 * kMaxQueuePairs);

inline constexpr uint32_t kGroupSlots = 256;  // groups that are advertised at a time
inline constexpr uint32_t kMaxGroup = 8;      // messages of a group

// Where a receiver is: what the sender must send once more after a move to other queue pairs.
struct Progress {
  uint64_t first = 0;                                    // group that is not complete; all before it are
  std::array<uint64_t, kGroupSlots / 64> complete = {};  // a bit for each group from `first` on

  bool isComplete(uint64_t group) const {
    const uint64_t bit = group - first;
    return group < first || (bit < kGroupSlots && (complete[bit / 64] >> (bit % 64) & 1) != 0);
  }
};

// Either side's word that a path has failed, with the one that it goes on over.
struct Move {
  uint32_t number = 0;  // of the connection's moves, from 1
  uint32_t device = 0;  // index of the NIC on either side: they are a rail
  Progress progress = {};
  Introduction introduction = {};
};

// What the other side has sent, where it is one. Else `why` says what is wrong with it, in a sentence without its end.
std::optional<Introduction> readIntroduction(std::span<const std::byte> bytes, std::string& why);
// `devices`: NICs of either host; `most`: moves that a connection makes.
std::optional<Move> readMove(std::span<const std::byte> bytes, uint32_t devices, uint32_t most, std::string& why);

// One buffer of a group, in the sender's area: slot (group modulo kGroupSlots), place in the group. The receiver's
// immediate, the number of groups that it has advertised so far, says that it is there.
struct Advertisement {
  uint64_t address = 0;
  uint32_t bytes = 0;  // capacity
  uint32_t key = 0;
  int32_t tag = 0;
  uint32_t count = 0;  // messages of the group
  uint32_t group = 0;  // low half of its number
  uint32_t reserved = 0;
};
static_assert(sizeof(Advertisement) == 32);

using AdvertisementSlot = std::array<Advertisement, kMaxGroup>;
// In the receiver's area: the bytes of each message of a group.
using SizesSlot = std::array<uint32_t, kMaxGroup>;

// The sender's immediate: the low bits of the group's number, and whether the sizes are in the receiver's area. Where
// they are not, the group is one message, and the completion says its size.
inline constexpr uint32_t kSizesFollow = uint32_t(1) << 31;
inline constexpr uint32_t kGroupBits = kSizesFollow - 1;

}  // namespace ncclrun::net
