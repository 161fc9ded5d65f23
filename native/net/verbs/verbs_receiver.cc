#include "net/verbs/verbs_receiver.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

#include "net/verbs/verbs_progress.h"

namespace ncclrun::net {
namespace {

constexpr size_t kSlotsAt = kGroupSlots * sizeof(SizesSlot);
// While so many advertisements are on their way, those that follow gather in one.
constexpr uint32_t kMaxUnderWay = 8;
// Bytes of a group. Such messages cost as much as the advertisements, not as their bytes.
constexpr uint32_t kSmallGroup = 4096;

}  // namespace

AdvertisementSlot& VerbsReceiver::ownSlot(uint64_t number) const {
  return reinterpret_cast<AdvertisementSlot*>(link_->area() + kSlotsAt)[number % kGroupSlots];
}

Status VerbsReceiver::irecv(std::span<const Buffer> group, Request*& out) {
  out = nullptr;
  NCCLRUN_TRY(link_->failure());
  if (link_->isMoving()) NCCLRUN_TRY(progress());
  if (link_->isMoving()) return {};
  for (const Buffer& buffer : group) {
    if (buffer.registration.opaque == nullptr)
      return {ncclInvalidArgument, "the memory of a receive is not registered"};
  }
  Group& next = groups_[posted_ % kGroupSlots];
  if (next.count > 0) return {};
  AdvertisementSlot& slot = ownSlot(posted_);
  for (size_t i = 0; i < group.size(); i++) {
    const Buffer& buffer = group[i];
    slot[i] = {.address = reinterpret_cast<uint64_t>(buffer.address),
               .bytes = uint32_t(std::min<size_t>(buffer.bytes, UINT32_MAX)),
               .key = VerbsLink::registeredOf(buffer.registration).remoteKey(),
               .tag = buffer.tag,
               .count = uint32_t(group.size()),
               .group = uint32_t(posted_)};
    next.memory[i] = &VerbsLink::registeredOf(buffer.registration);
  }
  next.count = uint32_t(group.size());
  NCCLRUN_TRY(postReceives(posted_));
  posted_++;
  out = reinterpret_cast<Request*>(&next);
  return advertise();
}

Status VerbsReceiver::postReceives(uint64_t number) {
  Group& group = groups_[number % kGroupSlots];
  const uint32_t pairs = link_->queuePairs();
  group.waitsFor = link_->splits() ? pairs : 1;
  for (uint32_t i = 0; i < group.waitsFor; i++)
    NCCLRUN_TRY(link_->postReceive(uint32_t(link_->splits() ? i : number % pairs), number));
  return {};
}

Status VerbsReceiver::advertise() {
  QueuePairHandle& pair = link_->queuePair(0);
  // While small messages come and the sender knows of more groups than it does not know of, these can wait: several
  // then share an advertisement, and a card can send as many more messages.
  while (advertised_ < posted_ && (!areSmall_ || posted_ - advertised_ >= awaited_) && underWay_ < kMaxUnderWay &&
         pair.freeSends() > 0) {
    const uint64_t first = advertised_ % kGroupSlots;
    const uint64_t count = std::min(posted_ - advertised_, kGroupSlots - first);
    const size_t used = groups_[(advertised_ + count - 1) % kGroupSlots].count * sizeof(Advertisement);
    verbs::ScatterGather entry{.address = reinterpret_cast<uint64_t>(&ownSlot(advertised_)),
                               .bytes = uint32_t((count - 1) * sizeof(AdvertisementSlot) + used),
                               .localKey = link_->areaKey()};
    verbs::SendWorkRequest request = {};
    request.entries = &entry;
    request.entryCount = 1;
    request.opcode = verbs::send_opcode::kWriteWithImmediate;
    request.flags = verbs::send_flag::kSignaled;
    if (entry.bytes <= pair.inlineBytes()) request.flags |= verbs::send_flag::kInline;
    request.remoteAddress = link_->peer().area + first * sizeof(AdvertisementSlot);
    request.remoteKey = link_->peer().areaKey;
    for (uint64_t i = 0; i < count; i++) awaited_ += groups_[(advertised_ + i) % kGroupSlots].waitsFor > 0 ? 1 : 0;
    advertised_ += count;
    request.immediate = htonl(uint32_t(advertised_));
    NCCLRUN_TRY(pair.postSends(request, 1));
    underWay_++;
  }
  return {};
}

void VerbsReceiver::arrived(const verbs::Completion& completion) {
  const uint32_t immediate = ntohl(completion.immediate);
  const uint64_t number = completion.id & ~kReceiveId;  // of the receive; those of a queue pair are used in their order
  Group& group = groups_[number % kGroupSlots];
  if ((immediate & kGroupBits) != uint32_t(number & kGroupBits) || group.waitsFor == 0) {
    link_->fail(ncclInternalError, "a message was announced that is not the one that is due");
    return;
  }
  const bool isLast = group.waitsFor == 1;
  if ((immediate & kSizesFollow) == 0) {
    group.bytes[0] = completion.bytes;
  } else if (isLast) {
    group.bytes = reinterpret_cast<const SizesSlot*>(link_->area())[number % kGroupSlots];
  }
  uint64_t all = 0;
  for (uint32_t i = 0; i < group.count && isLast; i++) {
    all += group.bytes[i];
    if (group.bytes[i] <= ownSlot(number)[i].bytes) continue;
    link_->fail(ncclInternalError, "a message was announced that is larger than its buffer");
    return;
  }
  if (--group.waitsFor > 0) return;
  awaited_--;
  areSmall_ = all <= kSmallGroup;
}

Status VerbsReceiver::poll() {
  std::array<verbs::Completion, kCompletionsAtOnce> completions;
  size_t got = completions.size();
  while (got == completions.size()) {
    got = link_->poll(completions);
    for (const verbs::Completion& one : std::span(completions).first(got)) {
      if (one.opcode == verbs::kReceivedWithImmediate) {
        arrived(one);
        continue;
      }
      if ((one.id & kFlushId) != 0) {
        flushes_[one.id & ~kFlushId].stage = Flush::Stage::done;
        link_->path().readBackComplete();
        continue;
      }
      link_->queuePair(0).sendsComplete(1);
      underWay_--;
    }
  }
  NCCLRUN_TRY(link_->failure());
  return link_->isMoving() ? Status{} : advertise();
}

Progress VerbsReceiver::progressSoFar() const {
  Progress progress;
  progress.first = posted_ > kGroupSlots ? posted_ - kGroupSlots : 0;
  while (progress.first < posted_ && groups_[progress.first % kGroupSlots].waitsFor == 0) progress.first++;
  for (uint64_t number = progress.first; number < posted_; number++) {
    const uint64_t bit = number - progress.first;
    if (groups_[number % kGroupSlots].waitsFor == 0) progress.complete[bit / 64] |= uint64_t(1) << (bit % 64);
  }
  return progress;
}

Status VerbsReceiver::move(bool& resumed) {
  resumed = false;
  NCCLRUN_TRY(poll());
  if (!link_->isDrained()) return {};
  const Progress mine = progressSoFar();
  Progress theirs = mine;
  NCCLRUN_TRY(link_->advanceMove(theirs, resumed));
  NCCLRUN_TRY(readBack());
  if (!resumed) return {};
  // What has not arrived is advertised once more, with the keys of the other card.
  for (uint64_t number = mine.first; number < posted_; number++) {
    Group& group = groups_[number % kGroupSlots];
    if (group.waitsFor == 0) continue;
    AdvertisementSlot& slot = ownSlot(number);
    for (uint32_t i = 0; i < group.count; i++) slot[i].key = group.memory[i]->remoteKey();
    NCCLRUN_TRY(postReceives(number));
  }
  advertised_ = mine.first;
  underWay_ = 0;
  awaited_ = 0;
  return advertise();
}

Status VerbsReceiver::progress() {
  return progressOf(
      *link_, [this] { return poll(); }, [this](bool& resumed) { return move(resumed); });
}

Status VerbsReceiver::readBack() {
  if (flushesOpen_ == 0 || !link_->hasPath()) return {};
  const bool isNew = std::exchange(flushPath_, link_->pathNumber()) != link_->pathNumber();
  for (size_t i = 0; i < flushes_.size(); i++) {
    Flush& flush = flushes_[i];
    if (flush.stage != Flush::Stage::waits && !(isNew && flush.stage == Flush::Stage::underWay)) continue;
    NCCLRUN_TRY(link_->path().readBack(kFlushId | i, flush.address, flush.memory->remoteKey()));
    flush.stage = Flush::Stage::underWay;
  }
  return {};
}

// A card's read of GPU memory does not overtake what it has written there before, so one for all buffers is enough.
Status VerbsReceiver::iflush(std::span<const Buffer> group, Request*& out) {
  out = nullptr;
  NCCLRUN_TRY(link_->failure());
  const auto last = std::find_if(group.rbegin(), group.rend(), [](const Buffer& buffer) { return buffer.bytes > 0; });
  if (last == group.rend()) return {};
  const auto free = std::find_if(flushes_.begin(), flushes_.end(),
                                 [](const Flush& flush) { return flush.stage == Flush::Stage::free; });
  if (free == flushes_.end()) return {ncclInternalError, "more flushes than receives are under way"};
  *free = {.stage = Flush::Stage::waits,
           .address = reinterpret_cast<uint64_t>(last->address),
           .memory = &VerbsLink::registeredOf(last->registration)};
  out = reinterpret_cast<Request*>(&*free);
  flushesOpen_++;
  return readBack();
}

Status VerbsReceiver::test(Request* request, bool& done, std::span<size_t> sizes) {
  auto* const flush = reinterpret_cast<Flush*>(request);
  done = false;
  if (flush >= flushes_.begin() && flush < flushes_.end()) {
    if (flush->stage != Flush::Stage::done) {
      const Status status = progress();
      if (flush->stage != Flush::Stage::done) return status;
    }
    flush->stage = Flush::Stage::free;
    flushesOpen_--;
    done = true;
    return {};
  }
  auto& group = *reinterpret_cast<Group*>(request);
  if (group.waitsFor > 0) {
    const Status status = progress();
    if (group.waitsFor > 0) return status;
  }
  done = true;
  for (size_t i = 0; i < std::min<size_t>(sizes.size(), group.count); i++) sizes[i] = group.bytes[i];
  group.count = 0;
  return {};
}

}  // namespace ncclrun::net
