// Messages between an engine and its host's agent. The twin of control/messages/bootstrap.ts, which explains each
// message; here are those that an engine writes or reads.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "nccl.h"

namespace ncclrun {

inline constexpr uint32_t kBootstrapProtocol = 5;
inline constexpr uint32_t kJoinRound = 0xffffffff;
inline constexpr uint32_t kSplitRound = 0x80000000;   // of a communicator's first split
inline constexpr uint32_t kAllGone = 0xffffffff;      // in place of the number of ranks that are left out
inline constexpr uint32_t kShrinkRound = 0xc0000000;  // of its first split that ranks are left out of

// A communicator as one rank of it is known to the agent.
struct Membership {
  ncclUniqueId id;
  uint32_t epoch;
  uint32_t size;
  uint32_t rank;
};

// What a rank contributes to a communicator.
struct PeerInfo {
  uint32_t version;
  uint32_t device;  // 0 host, 1 cuda
  uint32_t cudaDevice;
  uint32_t listenPort;
  uint64_t hostHash;
  uint64_t pidHash;
  uint64_t shmDevice;
  uint64_t busId;
  uint32_t flags;
  uint32_t sms;            // of the GPU
  uint32_t maxChannels;    // 0: as many as the plan likes
  uint32_t communicators;  // that its process has on the GPU already
};
static_assert(sizeof(PeerInfo) == 64);

// failed: the engine gave up, its program did nothing to that end. differed: nobody leaves, but the ranks' calls do not
// fit together. revoked: nobody leaves, but the rank has ended what was under way.
// Those that end in Alone come after the set-up: other ranks fail only where they wait for this one. brokenAlone: it
// stays, but nothing more comes from it.
enum class LeaveHow : uint32_t {
  finalized = 0,
  aborted = 1,
  failed = 2,
  differed = 5,
  revoked = 6,
  abortedAlone = 7,
  failedAlone = 8,
  brokenAlone = 9,
};

struct WelcomeMessage {
  uint32_t hostIndex = 0;
  uint32_t hostCount = 0;
  uint32_t rankCount = 0;
  uint32_t epoch = 0;
  std::string jobId;
  std::string hostName;
};

struct AbortedMessage {
  ncclUniqueId id{};
  uint32_t epoch = 0;
  uint32_t rank = 0;
  Status status;
};

// A rank is gone from a communicator.
struct PeerGoneMessage {
  ncclUniqueId id{};
  uint32_t epoch = 0;
  uint32_t receiver = 0;  // the rank that is notified
  uint32_t rank = 0;      // the one that is gone
  Status status;
  bool waited = false;  // the receiver waits for somebody, and for long
};

Bytes encodeHello(uint32_t pid, int32_t jobRank, const std::string& jobId, const std::string& engineVersion);
Bytes encodeJoin(const Membership& membership, const PeerInfo& info);
Bytes encodeGather(const Membership& membership, uint32_t round, std::span<const std::byte> own);
Bytes encodeBarrier(const Membership& membership, uint32_t round);  // a gather of 0 bytes
// Ranks of a communicator that take no part in its split.
struct LeftOut {
  std::vector<uint32_t> ranks;  // ascending
  bool gone = false;            // all that are gone, whoever these are; `ranks` is empty
};
Bytes encodeSplit(const Membership& membership, uint32_t round, int32_t colour, int32_t order, const PeerInfo& info,
                  const LeftOut& leftOut);
// `round`: kJoinRound, or the split that is left.
Bytes encodeLeave(const Membership& membership, LeaveHow how, const std::string& reason, uint32_t round);

// What a plan says of who we are.
bool decodePlan(std::span<const std::byte> payload, Membership& membership);
// False: not what bootstrap.ts describes.
bool decodeWelcome(std::span<const std::byte> payload, WelcomeMessage& message);
bool decodeRefused(std::span<const std::byte> payload, Status& status);
bool decodeAborted(std::span<const std::byte> payload, AbortedMessage& message);
bool decodePeerGone(std::span<const std::byte> payload, PeerGoneMessage& message);

}  // namespace ncclrun
