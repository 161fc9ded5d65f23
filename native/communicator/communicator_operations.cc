// The operations of a communicator that is ready, and the streams they are queued on.
#include "communicator/communicator.h"
#include "communicator/operation_hash.h"
#include "host/default_stream_slots.h"
#include "host/stream.h"

namespace ncclrun {

Status Communicator::checkStream(ncclrunStream_t stream) const {
  if (isDefaultStream(stream)) return {};
  if (!gpu_.has_value()) return Stream::find(stream) != nullptr ? Status{} : noSuchStream(stream);
  if (!isHostStream(stream)) return {};
  return {ncclInvalidArgument, formatSentence("stream %p is one of the host device, the communicator is one of GPU %d",
                                              static_cast<void*>(stream), gpu_->device)};
}

std::unique_ptr<Announcement> Communicator::announce(std::span<Operation> operations, ncclrunStream_t stream) {
  std::lock_guard lock(queueMutex_);
  if (state() != State::ready) return nullptr;
  for (Operation& operation : operations) operation.chosenAs = chosenAs_.load(std::memory_order_relaxed);
  return dataPath_->announce(operations, slotOf(stream));
}

void Communicator::consent(Announcement& announcement) {
  std::lock_guard lock(queueMutex_);
  if (state() == State::ready) dataPath_->consent(announcement);
}

ncclResult_t Communicator::enqueue(std::span<Operation> operations, ncclrunStream_t stream,
                                   std::unique_ptr<Announcement> announcement) {
  std::lock_guard lock(queueMutex_);
  if (ready("ncclGroupEnd") == nullptr) return currentStatus().ok() ? ncclInvalidUsage : currentStatus().code;
  if (settings_.blocking && mayBeFull()) {
    if (Status status = dataPath_->awaitRoom(); !status.ok()) return fail(status);
  }
  Called called = called_;
  for (Operation& operation : operations) {
    operation.number = ++called.operations;
    operation.before = called.hash;
    called.hash = hashOperation(called.hash, operation);
    operation.hash = called.hash;
    if (operation.collective != plan::Collective::sendRecv) called.hashed++;
    operation.hashed = called.hashed;
    operation.chosenAs = chosenAs_.load(std::memory_order_relaxed);
  }
  if (Status status = dataPath_->enqueue(operations, slotOf(stream), std::move(announcement)); !status.ok())
    return fail(status);
  called_ = called;
  return !settings_.blocking && mayBeFull() && dataPath_->full() ? ncclInProgress : ncclSuccess;
}

// Resolves the handle of a default stream: on the host device each rank has its own default stream.
ncclrunStream_t Communicator::slotOf(ncclrunStream_t stream) const {
  if (!isDefaultStream(stream) || gpu_.has_value()) return stream;
  useDefaultStreamSlot(defaultStreamSlot_);
  return defaultStream(defaultStreamSlot_);
}

Status Communicator::order(ncclrunStream_t later, ncclrunStream_t earlier) {
  std::lock_guard lock(queueMutex_);
  if (dataPath_ == nullptr) return {};
  return dataPath_->order(slotOf(later), slotOf(earlier));
}

}  // namespace ncclrun
