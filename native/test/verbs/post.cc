// What a program posts to queue pairs.
#include <cerrno>

#include "objects.h"
#include "state.h"

namespace stand_in_verbs {
namespace {

bool hasPlace(uint64_t posted, const std::atomic<uint64_t>& released, uint32_t capacity) {
  return posted - released.load(std::memory_order_acquire) < capacity;
}

Time readyAt(const QueuePair& pair) {
  const auto [low, high] = world().delay;
  if (high == 0) return Time::min();
  const double share = drawShare();
  const auto wait = std::chrono::microseconds(low + static_cast<int>(share * (high - low)));
  const Time ready = Clock::now() + wait;
  return pair.works.empty() ? ready : std::max(ready, pair.works.back().ready);
}

// 0, or why a device does not take it.
int checkSend(const QueuePair& pair, const SendRequest& request, uint64_t bytes) {
  const bool isInline = (request.flags & kInline) != 0;
  if (request.opcode < kWrite || request.opcode > kRead) return EINVAL;
  if (request.pieceCount < 0 || static_cast<uint32_t>(request.pieceCount) > pair.options.capacity.sendScatter) {
    return EINVAL;
  }
  if (isInline && (request.opcode == kRead || bytes > pair.options.capacity.inlineBytes)) return EINVAL;
  return hasPlace(pair.sendsPosted, pair.places->sends, pair.options.capacity.sends) ? 0 : ENOMEM;
}

int postOneSend(QueuePair& pair, const SendRequest& request) {
  uint64_t bytes = 0;
  for (int index = 0; index < request.pieceCount; ++index) bytes += request.pieces[index].bytes;
  const int error = checkSend(pair, request, bytes);
  if (error != 0) return error;
  Work work;
  work.id = request.id;
  work.index = pair.sendsPosted++;
  work.opcode = request.opcode;
  work.flags = request.flags;
  work.immediate = request.immediate;
  work.remoteAddress = request.remoteAddress;
  work.remoteKey = request.remoteKey;
  work.bytes = static_cast<uint32_t>(bytes);
  work.isSignaled = (request.flags & kSignaled) != 0 || pair.options.signalAll != 0;
  if (pair.state == kError) {
    complete(pair, work, kFlushed);
    return 0;
  }
  if (bytes > 1u << 30) work.planted.status = kLocalLength;
  work.number = pair.nextNumber;
  pair.nextNumber = (pair.nextNumber + 1) & 0xffffff;
  if ((request.flags & kInline) != 0) {
    for (int index = 0; index < request.pieceCount; ++index) {
      const auto* const data = reinterpret_cast<const uint8_t*>(request.pieces[index].address);
      work.inlined.insert(work.inlined.end(), data, data + request.pieces[index].bytes);
    }
  } else {
    work.pieces.assign(request.pieces, request.pieces + request.pieceCount);
  }
  work.ready = readyAt(pair);
  const PlantedEnd planted = plantedEnd(pair, request.opcode);
  if (planted.status != kSuccess) work.planted = planted;
  pair.works.push_back(std::move(work));
  return 0;
}

int postOneReceive(QueuePair& pair, const ReceiveRequest& request) {
  if (request.pieceCount < 0 || static_cast<uint32_t>(request.pieceCount) > pair.options.capacity.receiveScatter) {
    return EINVAL;
  }
  if (!hasPlace(pair.receivesPosted, pair.places->receives, pair.options.capacity.receives)) return ENOMEM;
  PostedReceive receive;
  receive.id = request.id;
  receive.index = pair.receivesPosted++;
  receive.pieces.assign(request.pieces, request.pieces + request.pieceCount);
  if (pair.state == kError) {
    completeReceive(pair, receive, kFlushed, nullptr);
    return 0;
  }
  receive.planted = plantedEnd(pair, kReceivedImmediate);
  pair.receives.push_back(std::move(receive));
  return 0;
}

}  // namespace

int postSend(QueuePairHandle* handle, SendRequest* requests, SendRequest** bad) {
  const Lock lock(world().mutex);
  require(handle, "ibv_post_send");
  auto& pair = *static_cast<QueuePair*>(handle);
  int error = pair.state == kReadyToSend || pair.state == kError ? 0 : EINVAL;
  for (; requests != nullptr && error == 0; requests = requests->next) {
    error = postOneSend(pair, *requests);
    if (error != 0) break;
  }
  if (error != 0) *bad = requests;
  pump(pair);
  return error;
}

int postReceive(QueuePairHandle* handle, ReceiveRequest* requests, ReceiveRequest** bad) {
  const Lock lock(world().mutex);
  require(handle, "ibv_post_recv");
  auto& pair = *static_cast<QueuePair*>(handle);
  int error = pair.state == kReset ? EINVAL : 0;
  for (; requests != nullptr && error == 0; requests = requests->next) {
    error = postOneReceive(pair, *requests);
    if (error != 0) break;
  }
  if (error != 0) *bad = requests;
  return error;
}

}  // namespace stand_in_verbs
