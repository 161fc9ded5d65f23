#include "net/verbs/verbs_sender.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "net/verbs/verbs_progress.h"

namespace ncclrun::net {
namespace {

constexpr size_t kSplitUnit = 128;  // bytes: parts of a message begin at its multiples
constexpr size_t kSizesAt = kGroupSlots * sizeof(AdvertisementSlot);

// What a completion is of: the number of the group and of the queue pair. An advertisement has none.
uint64_t idOf(uint64_t group, uint32_t pair, uint32_t requests) {
  return group << 24 | uint64_t(pair) << 16 | requests;
}

}  // namespace

const AdvertisementSlot& VerbsSender::advertised(uint64_t number) const {
  return reinterpret_cast<const AdvertisementSlot*>(link_->area())[number % kGroupSlots];
}

Status VerbsSender::poll() {
  std::array<verbs::Completion, kCompletionsAtOnce> completions;
  size_t got = completions.size();
  while (got == completions.size()) {
    got = link_->poll(completions);
    for (const verbs::Completion& one : std::span(completions).first(got)) {
      if (one.opcode == verbs::kReceivedWithImmediate) {
        known_ += uint32_t(ntohl(one.immediate) - uint32_t(known_));
        NCCLRUN_TRY(link_->postReceive(0, 0));
        continue;
      }
      const auto requests = uint32_t(one.id & 0xffff);
      link_->queuePair(uint32_t(one.id >> 16 & 0xff)).sendsComplete(requests);
      Group& group = groupOf(one.id >> 24);
      if (--group.waitsFor == 0) group.finish();
    }
  }
  return relaunch();
}

Status VerbsSender::relaunch() {
  while (!lost_.empty() && lost_.front() < known_ && hasRoom(lost_.front(), 0)) {
    const uint64_t number = lost_.front();
    lost_.pop_front();
    NCCLRUN_TRY(launch(number));
  }
  return {};
}

Status VerbsSender::move(bool& resumed) {
  Progress progress;
  NCCLRUN_TRY(link_->advanceMove(progress, resumed));
  if (!resumed) return {};
  known_ = progress.first;
  lost_.clear();
  for (uint64_t number = next_ > kGroupSlots ? next_ - kGroupSlots : 0; number < next_; number++) {
    Group& group = groupOf(number);
    if (group.waitsFor == 0) continue;
    if (!progress.isComplete(number)) {
      lost_.push_back(number);
      continue;
    }
    group.finish();
  }
  return {};
}

int VerbsSender::placeOf(uint64_t number, int tag) {
  const AdvertisementSlot& slot = advertised(number);
  const Group& group = groupOf(number);
  for (uint32_t i = 0; i < std::min(slot[0].count, kMaxGroup); i++) {
    if (slot[i].tag == tag && !group.messages[i].isOpen) return int(i);
  }
  return -1;
}

bool VerbsSender::hasRoom(uint64_t number, size_t bytes) const {
  const auto& group = groups_[number % kGroupSlots];
  size_t all = bytes;
  for (const Message& message : group.messages) all += message.isOpen ? message.bytes : 0;
  // Parts are rounded up, and each message may begin a request of its own.
  const size_t requests = all / link_->maxWrite() + 2 * kMaxGroup + 2;
  for (uint32_t i = 0; i < link_->queuePairs(); i++) {
    const bool isUsed = link_->splits() || i == number % link_->queuePairs();
    if (isUsed && link_->queuePair(i).freeSends() < requests) return false;
  }
  return true;
}

Status VerbsSender::isend(const void* data, size_t bytes, int tag, Registration registration, Request*& out) {
  out = nullptr;
  if (registration.opaque == nullptr) return {ncclInvalidArgument, "the memory of a send is not registered"};
  NCCLRUN_TRY(link_->failure());
  const auto isReady = [&] { return !link_->isMoving() && lost_.empty() && next_ < known_ && hasRoom(next_, bytes); };
  if (!isReady()) {
    NCCLRUN_TRY(progress());
    if (!isReady()) return {};
  }
  Group& group = groupOf(next_);
  if (group.filled == 0 && group.open > 0) return {};  // a group before it is not tested to its end
  const AdvertisementSlot& slot = advertised(next_);
  if (slot[0].count == 0 || slot[0].count > kMaxGroup || slot[0].group != uint32_t(next_))
    return link_->fail(ncclInternalError, "an advertisement is not the one that is due");
  const int place = placeOf(next_, tag);
  if (place < 0) return {};
  if (bytes > slot[size_t(place)].bytes) {
    return link_->fail(ncclInvalidUsage, "a message of " + std::to_string(bytes) + " bytes does not fit into the " +
                                             std::to_string(slot[size_t(place)].bytes) +
                                             " bytes that the other side receives into");
  }
  Message& message = group.messages[size_t(place)];
  message = {
      .data = data, .bytes = bytes, .memory = &VerbsLink::registeredOf(registration), .isOpen = true, .isSent = false};
  group.open++;
  out = reinterpret_cast<Request*>(&message);
  if (++group.filled < slot[0].count) return {};
  group.filled = 0;
  return launch(next_++);
}

void VerbsSender::write(const Source& from, const Target& to, size_t begin, size_t end) {
  for (size_t at = begin; at < end;) {
    const size_t bytes = std::min<size_t>(end - at, link_->maxWrite());
    verbs::ScatterGather& entry = chain_->entries[chain_->count];
    verbs::SendWorkRequest& request = chain_->requests[chain_->count++];
    entry = {.address = from.address + at, .bytes = uint32_t(bytes), .localKey = from.key};
    request = {};
    request.entries = &entry;
    request.entryCount = 1;
    request.opcode = verbs::send_opcode::kWrite;
    request.remoteAddress = to.address + at;
    request.remoteKey = to.key;
    if (from.mayInline && bytes <= link_->queuePair(0).inlineBytes()) request.flags = verbs::send_flag::kInline;
    at += bytes;
  }
}

// A request without data, for the immediate.
void VerbsSender::announce() {
  verbs::SendWorkRequest& empty = chain_->requests[chain_->count++];
  empty = {};
  empty.remoteAddress = link_->peer().area;
  empty.remoteKey = link_->peer().areaKey;
}

// The last request announces the group to the other side, and its completion says that all of the chain has arrived.
Status VerbsSender::post(QueuePairHandle& pair, uint64_t number, uint32_t index, bool sizesFollow) {
  if (chain_->count == 0) announce();
  for (uint32_t i = 0; i < chain_->count; i++) {
    verbs::SendWorkRequest& request = chain_->requests[i];
    request.next = i + 1 < chain_->count ? &chain_->requests[i + 1] : nullptr;
  }
  verbs::SendWorkRequest& last = chain_->requests[chain_->count - 1];
  last.opcode = verbs::send_opcode::kWriteWithImmediate;
  last.flags |= verbs::send_flag::kSignaled;
  last.immediate = htonl(uint32_t(number & kGroupBits) | (sizesFollow ? kSizesFollow : 0));
  last.id = idOf(number, index, chain_->count);
  groupOf(number).waitsFor++;
  return pair.postSends(chain_->requests[0], chain_->count);
}

Status VerbsSender::launch(uint64_t number) {
  const AdvertisementSlot& slot = advertised(number);
  Group& group = groupOf(number);
  const uint32_t count = std::min(slot[0].count, kMaxGroup), pairs = link_->queuePairs();
  group.waitsFor = 0;
  size_t all = 0;
  for (uint32_t i = 0; i < count; i++) all += group.messages[i].bytes;
  const bool isApart = link_->path().announcesApart(all);
  const bool sizesFollow = count > 1 || link_->splits() || isApart || group.messages[0].bytes > link_->maxWrite();
  const uint32_t parts = link_->splits() ? pairs : 1;
  for (uint32_t part = 0; part < parts; part++) {
    const auto index = uint32_t(link_->splits() ? part : number % pairs);
    chain_->count = 0;
    // The sizes go first, so that the last request is one with data.
    if (sizesFollow && part == 0) {
      auto* const sizes = reinterpret_cast<SizesSlot*>(link_->area() + kSizesAt) + number % kGroupSlots;
      for (uint32_t i = 0; i < count; i++) (*sizes)[i] = uint32_t(group.messages[i].bytes);
      write({.address = reinterpret_cast<uint64_t>(sizes), .key = link_->areaKey(), .mayInline = true},
            {.address = link_->peer().area + number % kGroupSlots * sizeof(SizesSlot), .key = link_->peer().areaKey}, 0,
            sizeof(SizesSlot));
    }
    for (uint32_t i = 0; i < count; i++) {
      const Message& message = group.messages[i];
      const size_t share = (message.bytes / parts + kSplitUnit) / kSplitUnit * kSplitUnit;
      const size_t begin = parts == 1 ? 0 : std::min(share * part, message.bytes);
      const size_t end = parts == 1 ? message.bytes : std::min(begin + share, message.bytes);
      write({.address = reinterpret_cast<uint64_t>(message.data),
             .key = message.memory->localKey(),
             .mayInline = message.memory->region.type == MemoryType::host},
            {.address = slot[i].address, .key = slot[i].key}, begin, end);
    }
    if (isApart) announce();
    NCCLRUN_TRY(post(link_->queuePair(index), number, index, sizesFollow));
  }
  return {};
}

Status VerbsSender::progress() {
  return progressOf(
      *link_, [this] { return poll(); }, [this](bool& resumed) { return move(resumed); });
}

Status VerbsSender::test(Request* request, bool& done, std::span<size_t> sizes) {
  auto& message = *reinterpret_cast<Message*>(request);
  done = false;
  if (!message.isSent) {
    const Status status = progress();
    if (!message.isSent) return status;
  }
  done = true;
  message.isOpen = false;
  const auto index = size_t(reinterpret_cast<std::byte*>(&message) - reinterpret_cast<std::byte*>(groups_.data()));
  groups_[index / sizeof(Group)].open--;
  if (!sizes.empty()) sizes[0] = message.bytes;
  return {};
}

}  // namespace ncclrun::net
