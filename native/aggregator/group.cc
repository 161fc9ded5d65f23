#include "aggregator/group.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/element.h"
#include "datapath/reduce.h"

namespace ncclrun::aggregator {
namespace {

// Whether the chunk of two members is the same one of the same collective.
bool isSameChunk(const FrameHeader& a, const FrameHeader& b) {
  return a.type == b.type && a.op == b.op && a.sequence == b.sequence && a.bytes == b.bytes && a.offset == b.offset &&
         a.totalBytes == b.totalBytes;
}

std::string describeCollective(const FrameHeader& header) {
  return formatSentence("collective %u: %llu bytes of type %d by operator %d", header.sequence,
                        static_cast<unsigned long long>(header.totalBytes), int(header.type), int(header.op));
}

}  // namespace

Group::Group(const Join& first, ChunkMemory& memory, std::byte* discarded, uint64_t now)
    : id_(first.group),
      size_(first.size),
      since_(now),
      memory_(memory),
      discarded_(discarded),
      members_(first.size),
      peers_(first.size) {}

std::string Group::describe(uint32_t rank) const { return formatSentence("rank %u (%s)", rank, peers_[rank].c_str()); }

std::string Group::missingRanks() const {
  std::string missing;
  for (uint32_t rank = 0; rank < size_; rank++) {
    if (members_[rank] == nullptr) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  return missing;
}

void Group::queue(Member& member, const FrameHeader& header, const std::byte* payload,
                  std::shared_ptr<const void> owner) {
  member.writer.queue(header, payload, std::move(owner));
  member.writer.flush(member.socket.get());  // that a connection has ended is seen when it is read
  changed_.push_back(&member);
}

void Group::join(Member& member) {
  const Join& join = member.join;
  if (!hasFailed() && join.size != size_)
    fail(ncclInvalidUsage, formatSentence("rank %u (%s) joins a group of %u, which the others say has %u members",
                                          join.rank, member.peer.c_str(), join.size, size_));
  if (!hasFailed() && !peers_[join.rank].empty())
    fail(ncclInvalidUsage, formatSentence("two members, %s and %s, join as rank %u", peers_[join.rank].c_str(),
                                          member.peer.c_str(), join.rank));
  if (hasFailed()) return failMember(member);
  members_[join.rank] = &member;
  peers_[join.rank] = member.peer;
  present_++;
  if (++joined_ < size_) return;
  FrameHeader header;
  header.kind = FrameKind::joined;
  for (Member* const each : members_) queue(*each, header);
}

bool Group::isSound(const Member& member, const FrameHeader& header) const {
  if (header.type >= ncclNumTypes || header.op >= ncclNumOps || joined_ < size_ || member.hasLeft) return false;
  const size_t element = elementBytes(ncclDataType_t(header.type));
  if (header.totalBytes % element != 0 || header.offset >= header.totalBytes || header.offset % kChunkBytes != 0)
    return false;
  return header.bytes == chunkBytesAt(header) && member.begun - member.resultsWritten() < kWindow;
}

bool Group::begin(Member& member) {
  const FrameHeader& header = member.reader.header();
  const uint32_t rank = member.join.rank;
  if (!isSound(member, header)) {
    member.isBroken = true;
    fail(ncclInternalError, describe(rank) + " sends what this protocol does not have");
    return true;
  }
  if (member.begun >= contributedUpTo_) {
    fail(ncclInvalidUsage,
         describe(leftRank_) + " has left the group, and " + describe(rank) + " calls " + describeCollective(header));
    return true;
  }
  Slot& slot = slots_[member.begun % kWindow];
  if (slot.begun > 0 && !isSameChunk(slot.header, header)) {
    fail(ncclInvalidUsage, "the members of the group make different calls: " + describe(slot.first) + " " +
                               describeCollective(slot.header) + "; " + describe(rank) + " " +
                               describeCollective(header));
    return true;
  }
  Chunk part;
  if (!memory_.take(header.bytes, member.begun == completed_, part)) return false;
  if (slot.begun++ == 0) {
    slot.header = header;
    slot.first = rank;
    slot.parts.resize(size_);
  }
  member.reader.expect(part.data());
  slot.parts[rank] = std::move(part);
  member.begun++;
  return true;
}

void Group::complete(Member& member) {
  Slot& slot = slots_[member.complete++ % kWindow];
  if (++slot.complete == size_) reduce(slot);
}

void Group::reduce(Slot& slot) {
  FrameHeader header = slot.header;
  header.kind = FrameKind::result;
  Reduction reduction;
  const auto type = ncclDataType_t(header.type);
  if (!makeReduction(type, ncclRedOp_t(header.op), nullptr, size_, reduction))
    return fail(ncclInternalError, "the aggregator has no reduction for " + describeCollective(header));
  const size_t count = header.bytes / elementBytes(type);
  std::vector<const void*> sources;
  for (const Chunk& part : slot.parts) {
    sources.push_back(part.data());
    if (reduction.scale != nullptr) reduction.scale(part.data(), part.data(), count, &reduction.scalar);
  }
  // The first member's chunk becomes the result.
  void* const target = slot.parts[0].data();
  reduction.reduce(&target, 1, sources.data(), size_, count, false);
  if (reduction.divide != nullptr) reduction.divide(target, count, reduction.divisor);
  const auto result = std::make_shared<const Chunk>(std::move(slot.parts[0]));
  slot = {};
  completed_++;
  for (Member* const member : members_) {
    if (member != nullptr) queue(*member, header, result->data(), result);
  }
}

void Group::leave(Member& member) {
  member.hasLeft = true;
  if (member.begun >= contributedUpTo_ || hasFailed()) return;
  contributedUpTo_ = member.begun;
  leftRank_ = member.join.rank;
  for (const Member* const other : members_) {
    if (other != nullptr && other->begun > contributedUpTo_)
      return fail(ncclInvalidUsage, describe(leftRank_) + " has left the group, while " + describe(other->join.rank) +
                                        " waits for its contribution");
  }
}

void Group::remove(Member& member, const std::string& why) {
  const uint32_t rank = member.join.rank;
  if (rank >= size_ || members_[rank] != &member) return;
  members_[rank] = nullptr;
  present_--;
  std::erase(changed_, &member);
  if (!member.hasLeft) fail(ncclRemoteError, describe(rank) + " is lost: " + why);
}

void Group::checkComplete(uint64_t now, uint64_t timeout) {
  if (joined_ == size_ || hasFailed() || now - since_ < timeout) return;
  fail(ncclRemoteError, formatSentence("of %u ranks %s have not joined the group within %.1f s", size_,
                                       missingRanks().c_str(), double(timeout) / 1e9));
}

void Group::checkSilence(uint64_t now, uint64_t timeout) {
  uint64_t mostComplete = 0;
  for (const Member* const member : members_) {
    if (member != nullptr) mostComplete = std::max(mostComplete, member->complete);
  }
  for (const Member* const member : members_) {
    if (member == nullptr || member->isPaused || member->hasLeft || hasFailed()) continue;
    if (member->complete < mostComplete && now > member->heardAt && now - member->heardAt > timeout)
      fail(ncclRemoteError, formatSentence("%s has been silent for %.0f s, while others wait for it: it is stopped, or "
                                           "its host or the network is",
                                           describe(member->join.rank).c_str(), double(timeout) / 1e9));
  }
}

bool Group::isOver(uint64_t now, uint64_t timeout) const {
  return isEmpty() && (joined_ == size_ || now - since_ >= timeout);
}

void Group::sendHeartbeats() {
  for (Member* const member : members_) {
    if (member != nullptr && !hasFailed() && member->writer.isEmpty()) queue(*member, {});
  }
}

void Group::fail(ncclResult_t code, const std::string& sentence) {
  if (hasFailed()) return;
  failure_ = {code, sentence};
  sentence_ = std::make_shared<const std::string>(sentence.substr(0, kMaxSentenceBytes));
  for (Member* const member : members_) {
    if (member != nullptr) failMember(*member);
  }
  for (Slot& slot : slots_) slot = {};
}

// What it sends from now on is read and discarded: closing a socket with unread data would take the failure from it.
void Group::failMember(Member& member) {
  FrameHeader header;
  header.kind = FrameKind::failed;
  header.result = uint8_t(failure_.code);
  header.bytes = uint32_t(sentence_->size());
  member.reader.discardRest(discarded_);
  member.isPaused = false;
  member.discardedSince = nowNanoseconds();
  queue(member, header, reinterpret_cast<const std::byte*>(sentence_->data()), sentence_);
}

}  // namespace ncclrun::aggregator
