// The receiver's side of a connection: what a message does to the queue pair that it is for.
#include <algorithm>
#include <cstring>

#include "copy.h"
#include "state.h"

namespace stand_in_verbs {
namespace {

bool isSame(const Gid& one, const Gid& other) { return std::memcmp(one.raw, other.raw, sizeof one.raw) == 0; }

// True if the message came by the path that the pair is connected with.
bool isFromPeer(QueuePair& pair, const Message& message) {
  const PathAddress& path = pair.attributes.path;
  if (pair.attributes.peer != message.from || pair.adapter->fabric != message.fabric) return false;
  const Port& port = pair.port();
  const auto isOwn = [&](const Gid& gid) { return isSame(gid, message.toGid); };
  if (port.configuration.link == kLinkEthernet) {
    return std::any_of(port.gids.begin(), port.gids.end(), isOwn) && isSame(path.gid, message.fromGid);
  }
  return message.toLid == port.lid && path.lid == message.fromLid;
}

bool isTooLargeForPort(const Port& port, const Message& message) {
  return message.mtu > port.configuration.mtu && message.bytes > 128u << port.configuration.mtu;
}

Answer refuse(int status) {
  return {.kind = Answer::kRefused, .status = static_cast<uint8_t>(status), .data = nullptr};
}

void consumeReceive(QueuePair& pair, int status, const Message* message) {
  const PostedReceive receive = std::move(pair.receives.front());
  pair.receives.pop_front();
  const int planted = receive.planted.status;
  completeReceive(pair, receive, status == kSuccess ? planted : status, message);
  if (status != kSuccess || planted != kSuccess) breakPair(pair);
}

// The receive that a refused message would have consumed tells of it, as with rdma_rxe.
Answer refuseAccess(QueuePair& pair, const Message& message) {
  const bool isOnePacket = message.bytes <= 128u << message.mtu;
  if (message.opcode == kWriteImmediate && isOnePacket && !pair.receives.empty()) {
    consumeReceive(pair, kRemoteAccess, nullptr);
  } else {
    breakPair(pair);
  }
  if (world().configuration.hasAccessEvent) raisePair(pair, kQueuePairAccess);
  return refuse(kRemoteAccess);
}

Answer receiveSend(QueuePair& pair, const Message& message, const std::vector<Source>& sources) {
  uint64_t space = 0;
  for (const Piece& piece : pair.receives.front().pieces) space += piece.bytes;
  if (space < message.bytes) {
    consumeReceive(pair, kLocalLength, nullptr);
    return refuse(kInvalidRequest);
  }
  if (!scatter(pair, pair.receives.front().pieces, sources)) {
    consumeReceive(pair, kLocalProtection, nullptr);
    return refuse(kRemoteOperation);
  }
  consumeReceive(pair, kSuccess, &message);
  return {.kind = Answer::kDone, .data = nullptr};
}

uint8_t* target(const QueuePair& pair, const Message& message, uint32_t access) {
  return resolve(message.key, false, pair.QueuePairHandle::domain, access, message.address, message.bytes);
}

Answer refuseKind(QueuePair& pair) {
  breakPair(pair);
  return refuse(kInvalidRequest);
}

Answer receiveWrite(QueuePair& pair, const Message& message, const std::vector<Source>& sources) {
  uint8_t* to = nullptr;
  if ((pair.attributes.access & kRemoteWrite) == 0) return refuseKind(pair);
  if (message.bytes > 0 && (to = target(pair, message, kRemoteWrite)) == nullptr) return refuseAccess(pair, message);
  for (const Source& source : sources) {
    copyAsDevice(to, source.data, source.bytes);
    to += source.bytes;
  }
  if (message.opcode == kWriteImmediate) consumeReceive(pair, kSuccess, &message);
  return {.kind = Answer::kDone, .data = nullptr};
}

Answer receiveRead(QueuePair& pair, const Message& message) {
  if (pair.attributes.peerReads == 0 || (pair.attributes.access & kRemoteRead) == 0) return refuseKind(pair);
  const uint8_t* const data = message.bytes == 0 ? nullptr : target(pair, message, kRemoteRead);
  if (message.bytes > 0 && data == nullptr) return refuseAccess(pair, message);
  return {.kind = Answer::kDone, .data = data};
}

}  // namespace

Answer respond(const Message& message, const std::vector<Source>& sources) {
  World& all = world();
  const Answer lost;
  const auto found = all.pairs.find(message.to);
  if (found == all.pairs.end()) return lost;
  QueuePair& pair = *found->second;
  if (pair.state != kReadyToReceive && pair.state != kReadyToSend) return lost;
  if (!isFromPeer(pair, message) || isTooLargeForPort(pair.port(), message)) return lost;
  if (isSwallowed(*pair.adapter, pair.port())) return lost;
  const uint32_t behind = (pair.expectedNumber - message.number) & 0xffffff;
  if (behind >= 0x800000) return lost;  // one before it is missing
  if (behind > 0) {
    if (message.opcode == kRead) return receiveRead(pair, message);
    return {.kind = Answer::kDone, .data = nullptr};  // it was here before
  }
  const bool consumes = message.opcode != kWrite && message.opcode != kRead;
  if (consumes && pair.receives.empty()) {
    return {.kind = Answer::kNotReady, .timer = pair.attributes.receiverTimer, .data = nullptr};
  }
  pair.expectedNumber = (pair.expectedNumber + 1) & 0xffffff;
  if (message.opcode == kRead) return receiveRead(pair, message);
  if (message.opcode == kWrite || message.opcode == kWriteImmediate) return receiveWrite(pair, message, sources);
  return receiveSend(pair, message, sources);
}

}  // namespace stand_in_verbs
