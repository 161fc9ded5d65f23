#include "aggregator/group.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/element.h"
#include "datapath/reduce.h"

namespace ncclrun::aggregator {
namespace {

// Smaller results wait for those that are made of the same read: one call of the system for all of them.
constexpr uint32_t kSentAtOnce = 16 << 10;
constexpr uint64_t kLaterByLevel = 250'000'000;  // ns

// Whether the chunk of two members is the same one of the same collective.
bool isSameChunk(const FrameHeader& a, const FrameHeader& b) {
  return a.type == b.type && a.op == b.op && a.sequence == b.sequence && a.bytes == b.bytes && a.offset == b.offset &&
         a.totalBytes == b.totalBytes;
}

std::string describeCollective(const FrameHeader& header) {
  return formatSentence("collective %u: %llu bytes of type %d by operator %d", header.sequence,
                        static_cast<unsigned long long>(header.totalBytes), int(header.type), int(header.op));
}

std::string describeChild(const JoinRequest& request, const std::string& peer) {
  const std::string ranks = describeRanks(request.ranks());
  return (request.join.level > 0 ? "the aggregator of " + ranks : ranks) + " (" + peer + ")";
}

}  // namespace

Group::Group(const JoinRequest& first, const Dial& dial, ChunkMemory& memory, std::byte* discarded, uint64_t now)
    : first_(first),
      size_(first.children().count),
      since_(now),
      memory_(memory),
      discarded_(discarded),
      parent_(first.above.empty() ? nullptr : std::make_unique<Parent>(first, dial, discarded)),
      members_(size_),
      peers_(size_) {}

std::string Group::describe(uint32_t child) const {
  JoinRequest request = first_;
  request.join.child = child;
  return describeChild(request, peers_[child]);
}
std::string Group::describeLeft() const { return formatSentence("rank %u (%s)", leftRank_, leftPeer_.c_str()); }

std::string Group::missingRanks() const {
  std::string missing;
  JoinRequest each = first_;
  for (uint32_t child = 0; child < size_; child++) {
    each.join.child = child;
    const Tree::Range ranks = each.ranks();
    const bool isThere = members_[child] != nullptr;
    if (isThere && members_[child]->isReady) continue;
    missing += (missing.empty() ? "" : ", ") + std::string(isThere ? "some of " : "") + std::to_string(ranks.first);
    if (ranks.count > 1) missing += " to " + std::to_string(ranks.first + ranks.count - 1);
  }
  return missing;
}

void Group::queue(Member& member, const FrameHeader& header, const std::byte* payload,
                  std::shared_ptr<const void> owner) {
  member.writer.queue(header, payload, std::move(owner));
  if (header.bytes >= kSentAtOnce) member.writer.flush(member.socket.get());
  changed_.push_back(&member);
}

void Group::join(Member& member) {
  const JoinRequest& request = member.request;
  const std::string name = describeChild(request, member.peer);
  if (!hasFailed() && request.join.members != first_.join.members)
    fail(ncclInvalidUsage, formatSentence("%s joins a group of %u, which the others say has %u members", name.c_str(),
                                          request.join.members, first_.join.members));
  if (!hasFailed() && (request.join.fanIn != first_.join.fanIn || request.above != first_.above))
    fail(ncclInvalidUsage, name + " joins a group of other aggregators than the others");
  if (!hasFailed() && !peers_[member.child()].empty())
    fail(ncclInvalidUsage, "two members, " + peers_[member.child()] + " and " + member.peer + ", join as " +
                               describeRanks(request.ranks()));
  if (hasFailed()) return failMember(member);
  members_[member.child()] = &member;
  peers_[member.child()] = member.peer;
  present_++;
  joined_++;
  if (!member.isAggregator()) ready(member);
}

void Group::ready(Member& member) {
  if (std::exchange(member.isReady, true)) return;
  if (++ready_ < size_ || hasFailed()) return;
  if (parent_ == nullptr) return open();
  parent_->reportJoined();
}

void Group::open() {
  isOpen_ = true;
  FrameHeader header;
  header.kind = FrameKind::joined;
  for (Member* const each : members_) {
    if (each != nullptr) queue(*each, header);
  }
}

bool Group::isSound(const Member& member, const FrameHeader& header) const {
  if (header.type >= ncclNumTypes || header.op >= ncclNumOps || !isOpen_ || member.hasLeft) return false;
  const size_t element = elementBytes(ncclDataType_t(header.type));
  if (header.totalBytes % element != 0 || header.offset >= header.totalBytes || header.offset % kChunkBytes != 0)
    return false;
  return header.bytes == chunkBytesAt(header) && member.begun - member.resultsWritten() < kWindow;
}

bool Group::begin(Member& member) {
  const FrameHeader& header = member.reader.header();
  const uint32_t child = member.child();
  if (!isSound(member, header)) {
    member.isBroken = true;
    fail(ncclInternalError, describe(child) + " sends what this protocol does not have");
    return true;
  }
  if (member.begun >= contributedUpTo_) {
    fail(ncclInvalidUsage,
         describeLeft() + " has left the group, and " + describe(child) + " calls " + describeCollective(header));
    return true;
  }
  Slot& slot = slots_[member.begun % kWindow];
  if (slot.begun > 0 && !isSameChunk(slot.header, header)) {
    fail(ncclInvalidUsage, "the members of the group make different calls: " + describe(slot.first) + " " +
                               describeCollective(slot.header) + "; " + describe(child) + " " +
                               describeCollective(header));
    return true;
  }
  Chunk part;
  if (!memory_.take(header.bytes, member.begun == reduced_, part)) return false;
  if (slot.begun++ == 0) {
    slot.header = header;
    slot.first = child;
    slot.parts.resize(size_);
  }
  member.reader.expect(part.data());
  slot.parts[child] = std::move(part);
  member.begun++;
  return true;
}

void Group::complete(Member& member) {
  Slot& slot = slots_[member.complete++ % kWindow];
  if (++slot.complete == size_) reduce(slot);
}

// Averages of floats are sums of what the leaves scale; the root divides those of integers.
void Group::reduce(Slot& slot) {
  const FrameHeader header = slot.header;
  Reduction reduction;
  const auto type = ncclDataType_t(header.type);
  if (!makeReduction(type, ncclRedOp_t(header.op), nullptr, first_.join.members, reduction))
    return fail(ncclInternalError, "the aggregator has no reduction for " + describeCollective(header));
  const size_t count = header.bytes / elementBytes(type);
  std::vector<const void*> sources;
  for (const Chunk& part : slot.parts) {
    sources.push_back(part.data());
    if (reduction.scale != nullptr && first_.join.level == 0)
      reduction.scale(part.data(), part.data(), count, &reduction.scalar);
  }
  // The first member's chunk becomes the result.
  void* const target = slot.parts[0].data();
  reduction.reduce(&target, 1, sources.data(), size_, count, false);
  if (reduction.divide != nullptr && parent_ == nullptr) reduction.divide(target, count, reduction.divisor);
  Chunk result = std::move(slot.parts[0]);
  slot = {};
  reduced_++;
  if (parent_ == nullptr) return deliver(header, std::make_shared<const Chunk>(std::move(result)));
  parent_->contribute(header, std::move(result), nowNanoseconds());
  tellParentWhoLeft();
}

void Group::deliver(const FrameHeader& contribution, const std::shared_ptr<const Chunk>& result) {
  FrameHeader header = contribution;
  header.kind = FrameKind::result;
  for (Member* const member : members_) {
    if (member != nullptr) queue(*member, header, result->data(), result);
  }
}

void Group::advanceParent(uint64_t now) {
  for (;;) {
    switch (parent_->step(now)) {
      case Parent::Step::nothing:
        return;
      case Parent::Step::joined:
        if (ready_ < size_)
          return fail(ncclInternalError, "the aggregator above sends what this protocol does not have");
        open();
        break;
      case Parent::Step::result: {
        const Parent::Result result = parent_->takeResult();
        deliver(result.header, result.chunk);
        break;
      }
      case Parent::Step::failed:
        return fail(parent_->failure().code, parent_->failure().sentence);
    }
  }
}

void Group::leave(Member& member) {
  member.hasLeft = true;
  if (member.begun >= contributedUpTo_ || hasFailed()) return;
  contributedUpTo_ = member.begun;
  leftRank_ = member.isAggregator() ? member.reader.header().sequence : member.request.ranks().first;
  leftPeer_ = member.isAggregator() ? "of the aggregator at " + member.peer : member.peer;
  for (const Member* const other : members_) {
    if (other != nullptr && other->begun > contributedUpTo_)
      return fail(ncclInvalidUsage,
                  describeLeft() + " has left the group, while " + describe(*other) + " waits for its contribution");
  }
  tellParentWhoLeft();
}

// Once all has been contributed that the group can contribute without that member.
void Group::tellParentWhoLeft() {
  if (parent_ != nullptr && reduced_ >= contributedUpTo_ && !hasFailed()) parent_->leave(leftRank_);
}

void Group::remove(Member& member, const std::string& why) {
  const uint32_t child = member.child();
  if (child >= size_ || members_[child] != &member) return;
  members_[child] = nullptr;
  present_--;
  std::erase(changed_, &member);
  if (!member.hasLeft) fail(ncclRemoteError, describe(member) + " is lost: " + why);
}

void Group::checkComplete(uint64_t now, uint64_t timeout) {
  // The aggregators below name the ranks that they miss, if they have the time.
  if (ready_ == size_ || hasFailed() || now - since_ < timeout + first_.join.level * kLaterByLevel) return;
  fail(ncclRemoteError, formatSentence("of %u ranks %s have not joined the group within %.1f s", first_.join.members,
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
                                           describe(*member).c_str(), double(timeout) / 1e9));
  }
  if (parent_ == nullptr || hasFailed()) return;
  if (const Status silent = parent_->checkSilence(now, timeout); !silent.ok()) fail(silent.code, silent.sentence);
}

bool Group::isOver(uint64_t now, uint64_t timeout) const {
  return isEmpty() && (joined_ == size_ || now - since_ >= timeout) && (parent_ == nullptr || parent_->isOver(now));
}

void Group::sendHeartbeats() {
  if (hasFailed()) return;
  for (Member* const member : members_) {
    if (member != nullptr && member->writer.isEmpty()) queue(*member, {});
  }
  if (parent_ != nullptr) parent_->beat();
}

void Group::fail(ncclResult_t code, const std::string& sentence) {
  if (hasFailed()) return;
  failure_ = {code, sentence};
  sentence_ = std::make_shared<const std::string>(sentence.substr(0, kMaxSentenceBytes));
  for (Member* const member : members_) {
    if (member != nullptr) failMember(*member);
  }
  for (Slot& slot : slots_) slot = {};
  if (parent_ != nullptr) parent_->reportFailure(failure_, nowNanoseconds());
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
