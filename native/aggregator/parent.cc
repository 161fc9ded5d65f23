#include "aggregator/parent.h"

#include <cstring>
#include <utility>

#include "base/clock.h"

namespace ncclrun::aggregator {

Parent::Parent(const JoinRequest& child, const Dial& dial, std::byte* discarded)
    : join_(encodeJoin(child.ofParent())), discarded_(discarded), heardAt_(nowNanoseconds()) {
  const JoinRequest up = child.ofParent();
  const net::ListenerAddress where = *net::decodeHandle(child.above.front());  // decodeJoin() has looked at it
  name_ = "the aggregator at " + where.address.textWithPort() + ", which reduces for " +
          describeRanks(up.tree().ranks(up.join.level, up.join.node));
  connecting_ = dial(where);
  FrameHeader header;
  header.kind = FrameKind::join;
  header.bytes = uint32_t(join_.size());
  writer.queue(header, join_.data());
}

Status Parent::connect() {
  NCCLRUN_TRY(connecting_(socket));
  if (!socket.valid()) return {};
  connecting_ = nullptr;
  writer.flush(socket.get());
  return {};
}

Parent::Step Parent::lost(ncclResult_t code, const std::string& why) {
  failure_ = {code, name_ + ", is lost: " + why};
  connecting_ = nullptr;
  socket.reset();
  pending_.clear();
  writer.clear();
  return Step::failed;
}

Parent::Step Parent::step(uint64_t now) {
  if (isConnecting()) {
    if (const Status status = connect(); !status.ok()) return lost(status.code, status.sentence);
    heardAt_ = now;
  }
  while (socket.valid()) {
    switch (reader.step(socket.get())) {
      case FrameReader::Step::nothing:
        return Step::nothing;
      case FrameReader::Step::closed:
        return lost(ncclRemoteError, reader.whyClosed());
      case FrameReader::Step::header:
        heardAt_ = now;
        if (const Step step = handleHeader(); step != Step::nothing) return step;
        break;
      case FrameReader::Step::payload:
        if (reader.header().kind == FrameKind::failed) {
          const Status failure = failureOf(reader.header(), received_);
          lost(failure.code, "");
          failure_ = failure;  // which names who is lost
          return Step::failed;
        }
        if (failedAt_ == 0) return Step::result;
        if (reader.header().kind == FrameKind::result) pending_.pop_front();
        break;
    }
  }
  return Step::nothing;
}

Parent::Step Parent::handleHeader() {
  const FrameHeader& header = reader.header();
  if (header.magic == kFrameMagic) {
    if (header.kind == FrameKind::heartbeat && header.bytes == 0) return Step::nothing;
    if (header.kind == FrameKind::joined && header.bytes == 0 && !std::exchange(isJoined_, true)) return Step::joined;
    if (header.kind == FrameKind::failed && header.bytes > 0 && header.bytes <= kMaxSentenceBytes) {
      received_.resize(header.bytes);
      reader.expect(reinterpret_cast<std::byte*>(received_.data()));
      return Step::nothing;
    }
    if (!pending_.empty() && pending_.front().number < writer.chunksWritten()) {
      FrameHeader expected = pending_.front().header;
      expected.kind = FrameKind::result;
      if (std::memcmp(&header, &expected, sizeof header) == 0) {
        // The contribution is written, so that the result can take its memory.
        reader.expect(failedAt_ == 0 ? pending_.front().chunk->data() : discarded_);
        return Step::nothing;
      }
    }
  }
  return lost(ncclInternalError, "it sends what this protocol does not have");
}

Parent::Result Parent::takeResult() {
  Result result{reader.header(), std::move(pending_.front().chunk)};
  pending_.pop_front();
  return result;
}

void Parent::reportJoined() {
  FrameHeader header;
  header.kind = FrameKind::joined;
  send(header);
}

void Parent::contribute(const FrameHeader& header, Chunk chunk, uint64_t now) {
  if (pending_.empty()) heardAt_ = now;
  auto shared = std::make_shared<Chunk>(std::move(chunk));
  pending_.push_back({header, shared, contributed_++});
  send(header, shared->data(), shared);
}

void Parent::leave(uint32_t rank) {
  if (std::exchange(hasLeft_, true)) return;
  FrameHeader header;
  header.kind = FrameKind::leave;
  header.sequence = rank;
  send(header);
}

void Parent::reportFailure(const Status& failure, uint64_t now) {
  failedAt_ = now;
  if (!failure_.ok()) return;  // it is the parent's own
  reader.discardRest(discarded_);
  sentence_ = std::make_shared<const std::string>(failure.sentence.substr(0, kMaxSentenceBytes));
  FrameHeader header;
  header.kind = FrameKind::failed;
  header.result = uint8_t(failure.code);
  header.bytes = uint32_t(sentence_->size());
  send(header, reinterpret_cast<const std::byte*>(sentence_->data()), sentence_);
}

void Parent::beat() {
  if (socket.valid() && writer.isEmpty()) send({});
}

Status Parent::checkSilence(uint64_t now, uint64_t timeout) const {
  const bool isAwaited = socket.valid() && (!isJoined_ || !pending_.empty()) && failedAt_ == 0;
  if (!isAwaited || now <= heardAt_ || now - heardAt_ <= timeout) return {};
  return {ncclRemoteError, formatSentence("%s, has been silent for %.0f s", name_.c_str(), double(timeout) / 1e9)};
}

bool Parent::isOver(uint64_t now) const {
  if (!failure_.ok()) return true;
  if (failedAt_ != 0) return now - failedAt_ > kDiscardFor;
  return !isConnecting() && writer.isEmpty();
}

}  // namespace ncclrun::aggregator
