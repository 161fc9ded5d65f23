// The sender's side of a connection: what is posted becomes messages, and answers become completions.
#include <algorithm>

#include "copy.h"
#include "state.h"
#include "wire.h"

namespace stand_in_verbs {
namespace {

Message messageOf(QueuePair& pair, const Work& work) {
  const Port& port = pair.port();
  const PathAddress& path = pair.attributes.path;
  Message message = {};
  message.to = pair.attributes.peer;
  message.from = pair.number;
  message.toGid = path.gid;
  if (path.isGlobal != 0 && path.gidIndex < port.gids.size()) message.fromGid = port.gids[path.gidIndex];
  message.toLid = path.isGlobal != 0 && port.configuration.link == kLinkEthernet ? uint16_t{0} : path.lid;
  message.fromLid = static_cast<uint16_t>(port.lid);
  message.opcode = static_cast<uint8_t>(work.opcode);
  message.isSolicited = (work.flags & kSolicited) != 0;
  message.mtu = static_cast<uint8_t>(pair.attributes.mtu);
  message.number = work.number;
  message.immediate = work.immediate;
  message.key = work.remoteKey;
  message.bytes = work.bytes;
  message.address = work.remoteAddress;
  message.fabric = pair.adapter->fabric;
  return message;
}

Time answerDue(const QueuePair& pair) {
  if (pair.attributes.timeout == 0) return kNever;
  return Clock::now() + std::chrono::nanoseconds(4096ull << pair.attributes.timeout);
}

// Times between messages for which there was no receive, by the receiver's code.
std::chrono::microseconds receiverWait(int code) {
  constexpr int kHundredths[] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                 48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                 2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::chrono::microseconds(10 * kHundredths[code & 31]);
}

void completeFirst(QueuePair& pair) {
  const Work work = std::move(pair.works.front());
  pair.works.pop_front();
  if (pair.sent > 0) --pair.sent;
  pair.tries = pair.receiverTries = 0;
  if (work.planted.status != kSuccess) {
    complete(pair, work, work.planted.status);
    breakPair(pair);
    return;
  }
  complete(pair, work, kSuccess);
}

void onNotReady(QueuePair& pair, int timer) {
  const int most = pair.attributes.receiverRetries;
  if (most < 7 && pair.receiverTries++ >= most) {
    failFirst(pair, kReceiverRetryExceeded);
    return;
  }
  pair.sent = 0;
  pair.answerDue = kNever;
  pair.pausedUntil = Clock::now() + receiverWait(timer);
}

bool takesRead(const QueuePair& pair, const Work& work, const std::vector<Source>& data) {
  return work.opcode != kRead || scatter(pair, work.pieces, data);
}

// Hands the first request to a peer in this process. False: it is to wait.
bool deliverHere(QueuePair& pair, const Message& message, const std::vector<Source>& sources, bool isLost) {
  const Answer answer = isLost ? Answer{} : respond(message, sources);
  if (pair.state != kReadyToSend) return false;  // to itself, and it has failed
  if (answer.kind == Answer::kLost) {
    pair.sent = 1;
    pair.answerDue = answerDue(pair);
    return false;
  }
  if (answer.kind == Answer::kNotReady) {
    onNotReady(pair, answer.timer);
    return false;
  }
  if (answer.kind == Answer::kRefused) {
    failFirst(pair, answer.status);
    return false;
  }
  if (takesRead(pair, pair.works.front(), {{answer.data, message.bytes}})) {
    completeFirst(pair);
  } else {
    failFirst(pair, kLocalProtection);
  }
  return pair.state == kReadyToSend;
}

}  // namespace

bool gather(const QueuePair& pair, const Work& work, std::vector<Source>& sources) {
  if (!work.inlined.empty()) sources.push_back({work.inlined.data(), work.inlined.size()});
  const uint32_t access = work.opcode == kRead ? uint32_t{kLocalWrite} : 0;
  for (const Piece& piece : work.pieces) {
    if (piece.bytes == 0) continue;
    const uint8_t* const data =
        resolve(piece.key, true, pair.QueuePairHandle::domain, access, piece.address, piece.bytes);
    if (data == nullptr) return false;
    if (work.opcode != kRead) sources.push_back({data, piece.bytes});
  }
  return true;
}

bool scatter(const QueuePair& pair, const std::vector<Piece>& pieces, const std::vector<Source>& sources) {
  size_t index = 0, offset = 0;
  for (const Piece& piece : pieces) {
    uint8_t* to = resolve(piece.key, true, pair.QueuePairHandle::domain, kLocalWrite, piece.address, piece.bytes);
    if (to == nullptr && piece.bytes > 0) return false;
    for (size_t left = piece.bytes; left > 0 && index < sources.size();) {
      const size_t part = std::min(left, sources[index].bytes - offset);
      copyAsDevice(to, sources[index].data + offset, part);
      to += part;
      left -= part;
      offset += part;
      if (offset == sources[index].bytes) ++index, offset = 0;
    }
  }
  return true;
}

void breakPair(QueuePair& pair) {
  if (pair.state == kReset) return;
  pair.state = kError;
  disarm(pair);
  pair.sent = 0;
  pair.isBlocked = false;
  const std::deque<Work> works = std::move(pair.works);
  const std::deque<PostedReceive> receives = std::move(pair.receives);
  pair.works.clear();
  pair.receives.clear();
  for (const Work& work : works) complete(pair, work, kFlushed);
  for (const PostedReceive& receive : receives) completeReceive(pair, receive, kFlushed, nullptr);
}

void failFirst(QueuePair& pair, int status) {
  const Work work = std::move(pair.works.front());
  pair.works.pop_front();
  complete(pair, work, status);
  breakPair(pair);
}

void pump(QueuePair& pair) {
  World& all = world();
  while (pair.state == kReadyToSend && pair.sent < pair.works.size()) {
    const bool isHere = pair.attributes.peer >> 12 == all.slot;
    if (isHere && pair.sent > 0) break;  // it is lost, and goes again before the others
    Work& work = pair.works[pair.sent];
    if (work.ready != Time::min() || pair.pausedUntil != Time::min()) {
      const Time now = Clock::now();
      if (work.ready > now || pair.pausedUntil > now) break;
      pair.pausedUntil = Time::min();
    }
    std::vector<Source> sources;
    int failure = work.planted.isDelivered ? kSuccess : work.planted.status;
    if (failure == kSuccess && !gather(pair, work, sources)) failure = kLocalProtection;
    if (failure == kSuccess && work.opcode == kRead && pair.attributes.reads == 0) failure = kLocalOperation;
    if (failure != kSuccess) {
      if (pair.sent > 0) break;  // after those before it
      failFirst(pair, failure);
      break;
    }
    Message message = messageOf(pair, work);
    ++all.messages;
    if (work.opcode == kWriteImmediate && work.bytes > 0) ++all.announced;
    const bool isLost = isSwallowed(*pair.adapter, pair.port());
    if (isHere) {
      if (!deliverHere(pair, message, sources, isLost)) break;
      continue;
    }
    pair.isBlocked = !isLost && !transmit(message, sources);
    if (pair.sent == 0 && pair.answerDue == kNever) pair.answerDue = answerDue(pair);
    if (pair.isBlocked) break;
    ++pair.sent;
  }
  arm(pair);
}

void onAnswer(QueuePair& pair, uint32_t number, const Answer& answer, const std::vector<Source>& data) {
  // Those before it are answered too, unless they wait for data.
  while (pair.state == kReadyToSend && pair.sent > 0 && pair.works.front().number != number) {
    const uint32_t ahead = (number - pair.works.front().number) & 0xffffff;
    if (ahead >= pair.sent) return;  // an answer of before
    if (pair.works.front().opcode == kRead) {
      pair.sent = 0;
      pump(pair);
      return;
    }
    completeFirst(pair);
  }
  if (pair.state != kReadyToSend || pair.sent == 0) return;
  if (answer.kind == Answer::kNotReady) {
    onNotReady(pair, answer.timer);
  } else if (answer.kind == Answer::kRefused) {
    failFirst(pair, answer.status);
  } else if (!takesRead(pair, pair.works.front(), data)) {
    failFirst(pair, kLocalProtection);
  } else {
    completeFirst(pair);
  }
  pair.answerDue = pair.sent > 0 ? answerDue(pair) : kNever;
  pump(pair);
}

void onTimer(QueuePair& pair, Time now) {
  // A card's timer runs for each packet, and here there is one answer for the whole message: its packets arrive.
  if (pair.answerDue <= now && isMoving(pair)) pair.answerDue = answerDue(pair);
  if ((pair.sent > 0 || pair.isBlocked) && pair.answerDue <= now) {
    const bool isEndless = pair.attributes.retries == 7 && world().configuration.retriesForever;
    if (!isEndless && pair.tries++ >= pair.attributes.retries) {
      failFirst(pair, kRetryExceeded);
      return;
    }
    pair.sent = 0;
    pair.answerDue = kNever;
    ++world().retransmissions;
  }
  pump(pair);
}

}  // namespace stand_in_verbs
