// What the members of a group and an aggregator send each other, after the handshake of the socket backend
// (net/socket/wire.h): frames, each a header and its payload. Little-endian; sizes are asserted. A connection is one
// member's of one group.
//
//   member → aggregator   join          payload: a Join, and the handles of the aggregators above
//   aggregator → member   joined        all members have joined
//   member → aggregator   contribution  payload: a chunk of what this member contributes
//   aggregator → member   result        payload: the reduction of all members' contributions to that chunk
//   aggregator → member   failed        payload: a sentence; the group has ended
//   both                  heartbeat     whatever the callers do
//   member → aggregator   leave         nothing follows, and no result is awaited
//
// In a tree of aggregators each but the root is a member of its parent's. It joins as soon as one of its own members
// has, and sends two frames that no other member sends:
//
//   child → parent        joined        all members below it have joined
//   child → parent        failed        payload: a sentence; the group has ended below
//
// Nothing but the order matches the chunks of the members. The headers of a chunk must be the same for all of them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "nccl.h"

namespace ncclrun::aggregator {

inline constexpr uint32_t kFrameMagic = 0x4741434e;  // "NCAG"
inline constexpr uint32_t kProtocolVersion = 2;
// Of every chunk but a collective's last one: a multiple of every element's size.
inline constexpr uint32_t kChunkBytes = 256 << 10;
// Chunks that a member may have contributed without having received their results.
inline constexpr uint32_t kWindow = 8;
// Heartbeats within the timeout after which silence is an error.
inline constexpr uint64_t kHeartbeatsPerTimeout = 4;
inline constexpr uint32_t kMaxMembers = 1 << 16;  // of a group, whatever the number of its aggregators
inline constexpr uint32_t kMaxSentenceBytes = 1024;
inline constexpr uint32_t kMaxJoinBytes = 4096;

enum class FrameKind : uint8_t {
  join = 1,
  joined = 2,
  contribution = 3,
  result = 4,
  failed = 5,
  heartbeat = 6,
  leave = 7,
};

struct FrameHeader {
  uint32_t magic = kFrameMagic;
  FrameKind kind = FrameKind::heartbeat;
  uint8_t type = 0;    // of a contribution and its result: ncclDataType_t
  uint8_t op = 0;      // of these: ncclRedOp_t
  uint8_t result = 0;  // of failed: ncclResult_t
  // Of a contribution and its result: the collective, from 0, modulo 2^32. Of leave: the rank that leaves.
  uint32_t sequence = 0;
  uint32_t bytes = 0;       // of the payload
  uint64_t offset = 0;      // of the chunk in the collective
  uint64_t totalBytes = 0;  // of the collective
};
static_assert(sizeof(FrameHeader) == 32);

using GroupId = std::array<uint8_t, 16>;

// A node of the group's tree (tree.h), and which of its children joins it. A tree of one level has one aggregator.
struct Join {
  uint32_t version = kProtocolVersion;
  uint32_t members = 0;  // of the group
  uint32_t fanIn = 2;
  uint32_t level = 0, node = 0;
  uint32_t child = 0;  // of the node's: a member at level 0, else an aggregator
  GroupId group = {};
};
static_assert(sizeof(Join) == 40);

// The chunk of the collective that begins at header.offset; its fields of the whole collective are set.
inline uint32_t chunkBytesAt(const FrameHeader& header) {
  const uint64_t left = header.totalBytes - header.offset;
  return left < kChunkBytes ? uint32_t(left) : kChunkBytes;
}

}  // namespace ncclrun::aggregator
