// RailGroup: how steps go through the network.
#include <algorithm>

#include "base/element.h"
#include "datapath/reduce.h"
#include "net/proxy/rail_group.h"

namespace ncclrun {

net::RegisteredBuffer RailGroup::bufferOf(const Side& side, uint64_t step) const {
  return {side.slots + slotOf(step) * side.stride, side.registration.value_or(net::Registration{})};
}

// Of a step that the block has filled. A block says it by its call, a kernel above the bytes.
std::optional<net::Reduction> RailGroup::reductionOf(uint32_t slot) const {
  if (!sends_.device.has_value()) {
    const StepCall& call = sends_.calls[slot];
    return networkReduction(ncclDataType_t(call.type), ncclRedOp_t(call.op));
  }
  const uint32_t number = sends_.ring.stepBytes[slot].load(std::memory_order_relaxed) / cuda::kReducedStepBytes;
  if (number == 0 || number > uint32_t(ncclNumTypes) * ReduceTable::kOps) return {};
  return net::Reduction{ncclDataType_t((number - 1) / ReduceTable::kOps),
                        ncclRedOp_t((number - 1) % ReduceTable::kOps)};
}

size_t RailGroup::bytesOf(uint32_t slot) const {
  const uint32_t bytes = sends_.ring.stepBytes[slot].load(std::memory_order_relaxed);
  return sends_.device.has_value() ? bytes % cuda::kReducedStepBytes : bytes;
}

// Into the slot of the same number that comes back.
Status RailGroup::post(uint64_t step, net::Request*& request) {
  const uint32_t slot = slotOf(step);
  const auto reduction = reductionOf(slot);
  if (!reduction.has_value()) {
    return {ncclInternalError,
            "the network is to reduce " + describe(sends_.calls[slot]) + ", which it cannot; a defect of ncclrun"};
  }
  return group_->iallreduce(bufferOf(sends_, step), bufferOf(receives_, step),
                            bytesOf(slot) / elementBytes(reduction->type), *reduction, request);
}

Status RailGroup::postFilled() {
  for (;;) {
    const bool isFilled = posted_ < sends_.ring.tail.load(std::memory_order_seq_cst);
    const bool isFree = posted_ < receives_.ring.head.load(std::memory_order_seq_cst) + setup_.steps;
    if (!isFilled || !isFree || posted_ - done_ >= std::min<size_t>(setup_.steps, net::kMaxCollectives)) return {};
    net::Request*& request = requests_[slotOf(posted_)];
    request = nullptr;
    NCCLRUN_TRY(post(posted_, request));
    if (request == nullptr) return {};
    posted_++;
  }
}

Status RailGroup::takeReduced() {
  while (done_ < posted_) {
    bool isDone = false;
    NCCLRUN_TRY(group_->test(requests_[slotOf(done_)], isDone));
    if (!isDone) return {};
    const uint32_t slot = slotOf(done_);
    receives_.ring.stepBytes[slot].store(uint32_t(bytesOf(slot)), std::memory_order_relaxed);
    receives_.calls[slot] = sends_.calls[slot];
    NCCLRUN_TRY(flush(done_++));
    sends_.ring.head.store(done_, std::memory_order_seq_cst);
  }
  return {};
}

Status RailGroup::flush(uint64_t step) {
  net::Request*& request = flushes_[slotOf(step)];
  request = nullptr;
  const auto& device = receives_.device;
  if (!device.has_value() || !device->gpu.has_value() || !device->gpu->flushes) return {};
  return group_->iflush(bufferOf(receives_, step), bytesOf(slotOf(step)), request);
}

Status RailGroup::publishVisible() {
  while (visible_ < done_) {
    const uint32_t slot = slotOf(visible_);
    bool isVisible = flushes_[slot] == nullptr;
    if (!isVisible) NCCLRUN_TRY(group_->test(flushes_[slot], isVisible));
    if (!isVisible) return {};
    receives_.ring.tail.store(++visible_, std::memory_order_seq_cst);
  }
  return {};
}

bool RailGroup::reduce() {
  const uint64_t before = posted_ + done_ + visible_;
  if (sends_.device.has_value()) {
    sends_.device->fetch(sends_.ring, true, setup_.steps);
    receives_.device->fetch(receives_.ring, false, setup_.steps);
  }
  Status status = postFilled();
  if (status.ok()) status = takeReduced();
  if (status.ok()) status = publishVisible();
  if (!status.ok()) {
    breakWith(status);
    return true;
  }
  if (sends_.device.has_value()) {
    sends_.device->store(sends_.ring, true);
    receives_.device->store(receives_.ring, false);
  }
  return posted_ + done_ + visible_ != before;
}

}  // namespace ncclrun
