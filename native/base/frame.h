// The one framing of every byte stream between our processes. The twin of control/messages/frame.ts, kinds in the same
// order.
#pragma once
#include <cstdint>

namespace ncclrun {

inline constexpr uint32_t kFrameVersion = 1;
inline constexpr uint32_t kMaxPayloadBytes = 16u << 20;
inline constexpr uint32_t kAllRanks = 0xffffffffu;

// Little-endian on the wire; every host we build for is little-endian (checked in frame.cc).
struct FrameHeader {
  uint32_t payloadBytes;
  uint8_t version;
  uint8_t kind;
  uint16_t flags;
  uint32_t subject;
  uint32_t request;
};
static_assert(sizeof(FrameHeader) == 16);

enum class FrameKind : uint8_t {
  spawn = 0x10,
  spawned = 0x11,
  spawnFailed = 0x12,
  exited = 0x13,
  output = 0x14,  // request: when it was read, the low 32 bits of realtime ms
  outputCredit = 0x15,
  standardInput = 0x16,
  stdinCredit = 0x17,
  signal = 0x18,
  lease = 0x19,
  heartbeat = 0x1a,
  end = 0x1b,
  ended = 0x1c,
  notice = 0x1d,
  pmi = 0x1e,
  readStack = 0x1f,

  staging = 0x35,
  invitation = 0x36,
  rankPositions = 0x37,
  childAgent = 0x38,
  reach = 0x39,
  aggregate = 0x3a,
  aggregatorOrder = 0x3b,
  aggregatorUp = 0x3c,
  recorder = 0x3d,
  stacks = 0x3e,
  clock = 0x3f,

  engineHello = 0x50,
  welcome = 0x51,
  join = 0x52,
  plan = 0x53,
  gather = 0x54,
  table = 0x55,
  post = 0x56,
  fetch = 0x57,
  delivery = 0x58,
  refused = 0x59,
  leave = 0x5a,
  aborted = 0x5b,
  split = 0x5c,
  telemetry = 0x5d,
  peerGone = 0x5e,
};

inline constexpr uint16_t kOutputStderr = 1;
inline constexpr uint16_t kOutputPartial = 2;
inline constexpr uint16_t kOutputEnd = 4;
inline constexpr uint16_t kStdinEnd = 1;
inline constexpr uint16_t kPmiRead = 1;
inline constexpr uint16_t kPmiClose = 2;

}  // namespace ncclrun
