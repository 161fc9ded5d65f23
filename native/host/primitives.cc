#include "host/primitives.h"

#include <algorithm>
#include <cstring>

namespace ncclrun {
namespace {

size_t smallestSlot(size_t bytes, std::span<Endpoint* const> receives, std::span<Endpoint* const> sends) {
  for (const Endpoint* end : receives) bytes = std::min<size_t>(bytes, end->facts().stepBytes);
  for (const Endpoint* end : sends) bytes = std::min<size_t>(bytes, end->facts().stepBytes);
  return bytes;
}

size_t fewestSlots(std::span<Endpoint* const> sends) {
  size_t slots = SIZE_MAX;
  for (const Endpoint* end : sends) slots = std::min<size_t>(slots, end->facts().steps);
  return slots;
}

}  // namespace

HostPrimitives::HostPrimitives(Blocks& blocks, const Setup& setup)
    : blocks_(blocks),
      receives_(setup.receives),
      sends_(setup.sends),
      elementBytes_(setup.elementBytes),
      slotElements_(smallestSlot(setup.slotBytes, setup.receives, setup.sends) / setup.elementBytes),
      slots_(fewestSlots(setup.sends)),
      reduction_(setup.reduction),
      scratch_(setup.scratch),
      stream_(setup.stream),
      lends_(setup.lends) {
  if (receives_.size() >= kFew) {
    manySources_.resize(receives_.size() + 1);
    sources_ = manySources_.data();
  }
  if (sends_.size() >= kFew) {
    manyTargets_.resize(sends_.size() + 1);
    targets_ = manyTargets_.data();
  }
}

void HostPrimitives::copy(const void* source, void* target, size_t count) {
  if (source == target || count == 0) return;
  copyFunction()(&target, 1, &source, 1, count * elementBytes_, stream_);
}

void HostPrimitives::copyAll(const void* source, void* target, size_t count, uint32_t block, uint32_t) {
  if (block != 0 || count == 0) return;
  if (reduction_.scale == nullptr) return copy(source, target, count);
  reduction_.scale(target, source, count, &reduction_.scalar);
}

// The user's buffer is his: a contribution is scaled beside it.
const void* HostPrimitives::scaled(const void* own, size_t count) {
  if (own == nullptr || reduction_.scale == nullptr) return own;
  if (scratch_.size() < count * elementBytes_) scratch_.resize(count * elementBytes_);
  reduction_.scale(scratch_.data(), own, count, &reduction_.scalar);
  return scratch_.data();
}

void HostPrimitives::combine(uint32_t targetCount, uint32_t sourceCount, size_t count, bool stream) {
  const size_t bytes = count * elementBytes_;
  if (sourceCount > 1) {
    reduction_.reduce(targets_, targetCount, sources_, sourceCount, count, stream);
  } else if (targetCount == 1 && !stream) {
    std::memcpy(targets_[0], sources_[0], bytes);
  } else {
    copyFunction()(targets_, targetCount, sources_, 1, bytes, stream);
  }
}

void HostPrimitives::signal(uint32_t to) {
  if (ended_) return;
  if (!blocks_.await({{}, sends_.subspan(to, 1)}) || !allTake(sends_.subspan(to, 1))) {
    ended_ = true;
    return;
  }
  sends_[to]->publish(0);
}

void HostPrimitives::await(uint32_t from) {
  if (ended_) return;
  if (!blocks_.await({receives_.subspan(from, 1), {}}) || !arrivedRight(*receives_[from], 0)) {
    ended_ = true;
    return;
  }
  receives_[from]->release();
}

bool HostPrimitives::allTake(std::span<Endpoint* const> to) {
  for (Endpoint* const end : to) {
    const Status why = end->gone();
    if (why.ok()) continue;
    giveUp(*end, why, blocks_.spin().interrupt());
    return false;
  }
  return true;
}

bool HostPrimitives::arrivedRight(const Endpoint& end, uint32_t bytes) {
  if (end.arrivedRight(bytes)) return true;
  blocks_.spin().interrupt().raise({ncclInvalidUsage, end.describeWrong(bytes)});
  return false;
}

void HostPrimitives::finishSends() {
  if (!hasLent_) return;
  if (!ended_) ended_ = !blocks_.await({.receives = {}, .sends = {}, .unsent = sends_});
  hasLent_ = ended_;
}

void HostPrimitives::finish() {
  finishSends();
  if (!ended_ || !(hasLent_ || hasWanted_)) return;
  for (Endpoint* const end : sends_) end->forgetLent();
  for (Endpoint* const end : receives_) end->forgetLent();
}

void HostPrimitives::move(std::span<Endpoint* const> from, std::span<Endpoint* const> to, const void* own,
                          uint32_t ownIndex, void* target, size_t count) {
  if (ended_ || count == 0) return;
  const size_t bytes = count * elementBytes_;
  const bool isMoved = from.size() == 1 && own == nullptr && target != nullptr;
  if (isMoved && lends(*from[0], bytes)) {
    from[0]->receiveInto(static_cast<std::byte*>(target), uint32_t(bytes));
    hasWanted_ = true;
  }
  if (!blocks_.await({from, to}) || !allTake(to)) {
    ended_ = true;
    return;
  }
  const void* const users = own;
  own = scaled(own, count);
  uint32_t sourceCount = 0, targetCount = 0;
  for (Endpoint* end : from) {
    if (!arrivedRight(*end, uint32_t(bytes))) {
      ended_ = true;
      return;
    }
    if (own != nullptr && sourceCount == ownIndex) sources_[sourceCount++] = own;
    sources_[sourceCount++] = end->payload();
  }
  if (own != nullptr && sourceCount == from.size()) sources_[sourceCount++] = own;
  // What is in the user's memory already, or will be, is sent from there.
  const void* const lent = target != nullptr ? target : sourceCount == 1 && own == users ? own : nullptr;
  bool isRead = false;
  for (Endpoint* end : to) {
    const bool isLent = lent != nullptr && lends(*end, bytes);
    if (!isLent) targets_[targetCount++] = end->slot();
    isRead = isRead || isLent;
  }
  if (target != nullptr && !(sourceCount == 1 && sources_[0] == target)) targets_[targetCount++] = target;

  if (targetCount > 0) combine(targetCount, sourceCount, count, stream_ && target != nullptr && !isRead);
  // What is reduced into a user's buffer is the result.
  if (reduction_.divide != nullptr && sourceCount > 1 && target != nullptr) {
    for (uint32_t i = 0; i < targetCount; i++) reduction_.divide(targets_[i], count, reduction_.divisor);
  }
  for (Endpoint* end : to) {
    const bool isLent = lent != nullptr && lends(*end, bytes);
    end->publish(uint32_t(bytes), isLent ? static_cast<const std::byte*>(lent) : nullptr);
  }
  hasLent_ = hasLent_ || isRead;
  for (Endpoint* end : from) end->release();
  blocks_.telemetry().progress();
}

}  // namespace ncclrun
