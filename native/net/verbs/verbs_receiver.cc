#include "net/verbs/verbs_receiver.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace ncclrun::net {
namespace {

constexpr size_t kSlotsAt = kGroupSlots * sizeof(SizesSlot);
// While so many advertisements are on their way, those that follow gather in one.
constexpr uint32_t kMaxUnderWay = 8;

}  // namespace

AdvertisementSlot& VerbsReceiver::ownSlot(uint64_t number) const {
  return reinterpret_cast<AdvertisementSlot*>(link_->area() + kSlotsAt)[number % kGroupSlots];
}

Status VerbsReceiver::irecv(std::span<const Buffer> group, Request*& out) {
  out = nullptr;
  NCCLRUN_TRY(link_->failure());
  for (const Buffer& buffer : group) {
    if (buffer.registration.opaque == nullptr)
      return {ncclInvalidArgument, "the memory of a receive is not registered"};
  }
  Group& next = groups_[posted_ % kGroupSlots];
  if (next.count > 0) return {};
  const uint32_t pairs = link_->queuePairs();
  next.waitsFor = link_->splits() ? pairs : 1;
  for (uint32_t i = 0; i < next.waitsFor; i++) {
    const auto index = uint32_t(link_->splits() ? i : posted_ % pairs);
    NCCLRUN_TRY(link_->queuePair(index).postReceive(posted_));
  }
  AdvertisementSlot& slot = ownSlot(posted_);
  for (size_t i = 0; i < group.size(); i++) {
    const Buffer& buffer = group[i];
    slot[i] = {.address = reinterpret_cast<uint64_t>(buffer.address),
               .bytes = uint32_t(std::min<size_t>(buffer.bytes, UINT32_MAX)),
               .key = VerbsLink::regionOf(buffer.registration).region->remoteKey,
               .tag = buffer.tag,
               .count = uint32_t(group.size()),
               .group = uint32_t(posted_)};
  }
  next.count = uint32_t(group.size());
  posted_++;
  out = reinterpret_cast<Request*>(&next);
  return advertise();
}

Status VerbsReceiver::advertise() {
  QueuePairHandle& pair = link_->queuePair(0);
  while (advertised_ < posted_ && underWay_ < kMaxUnderWay && pair.freeSends() > 0) {
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
    advertised_ += count;
    request.immediate = htonl(uint32_t(advertised_));
    NCCLRUN_TRY(pair.postSends(request, 1));
    underWay_++;
  }
  return {};
}

void VerbsReceiver::arrived(const verbs::Completion& completion) {
  const uint32_t immediate = ntohl(completion.immediate);
  const uint64_t number = completion.id;  // of the receive; those of a queue pair are used in their order
  Group& group = groups_[number % kGroupSlots];
  if ((immediate & kGroupBits) != uint32_t(number & kGroupBits) || group.waitsFor == 0) {
    link_->fail(ncclInternalError, "a message was announced that is not the one that is due");
    return;
  }
  if ((immediate & kSizesFollow) == 0) {
    group.bytes[0] = completion.bytes;
  } else if (group.waitsFor == 1) {
    group.bytes = reinterpret_cast<const SizesSlot*>(link_->area())[number % kGroupSlots];
  }
  group.waitsFor--;
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
      link_->queuePair(0).sendsComplete(1);
      underWay_--;
    }
  }
  NCCLRUN_TRY(link_->failure());
  return advertise();
}

Status VerbsReceiver::iflush(std::span<const Buffer>, Request*& out) {
  out = nullptr;
  return {};
}

Status VerbsReceiver::test(Request* request, bool& done, std::span<size_t> sizes) {
  auto& group = *reinterpret_cast<Group*>(request);
  done = false;
  for (bool pollAgain = true; pollAgain && group.waitsFor > 0;) {
    NCCLRUN_TRY(poll());
    pollAgain = false;
    if (group.waitsFor > 0) NCCLRUN_TRY(link_->health(pollAgain));
  }
  if (group.waitsFor > 0) return {};
  done = true;
  for (size_t i = 0; i < std::min<size_t>(sizes.size(), group.count); i++) sizes[i] = group.bytes[i];
  group.count = 0;
  return {};
}

}  // namespace ncclrun::net
