#include "datapath/recorder.h"

namespace ncclrun {
namespace {

constexpr uint8_t kUnknownStream = 255;

bool hasPeer(plan::Collective collective) {
  using plan::Collective;
  return collective == Collective::sendRecv || collective == Collective::broadcast ||
         collective == Collective::reduce || collective == Collective::gather || collective == Collective::scatter;
}

}  // namespace

Recorder::Recorder(std::shared_ptr<const RecorderClaim> claim, uint32_t ranks)
    : claim_(std::move(claim)), memory_(claim_ != nullptr ? claim_->memory : nullptr), ranks_(ranks) {}

uint32_t Recorder::numberOf(const Operation& operation) {
  if (operation.collective != plan::Collective::sendRecv) return uint32_t(operation.hashed);
  auto& counts = operation.send != nullptr ? sent_ : received_;
  if (counts.empty()) counts.resize(ranks_);
  return operation.peer < ranks_ ? ++counts[operation.peer] : 0;
}

uint64_t Recorder::enqueued(const Operation& operation, const plan::VariantRecord& variant, uint16_t flags,
                            uint64_t now) {
  if (memory_ == nullptr) return 0;
  const uint64_t record = std::atomic_ref(memory_->lastSequence).fetch_add(1, std::memory_order_relaxed) + 1;
  ncclrunRecorderEntry& entry = memory_->entries[(record - 1) % NCCLRUN_RECORDER_ENTRIES];
  set(entry.sequence, uint64_t{0});
  std::atomic_thread_fence(std::memory_order_release);
  const bool isMessage = operation.collective == plan::Collective::sendRecv;
  if (isMessage && operation.send != nullptr) flags |= ncclrunRecordSend;
  if (operation.send != nullptr && operation.send == operation.receive) flags |= ncclrunRecordInPlace;
  set(entry.enqueuedNs, now);
  set(entry.startedNs, uint64_t{0});
  set(entry.endedNs, uint64_t{0});
  set(entry.count, uint64_t{operation.count});
  set(entry.operation, numberOf(operation));
  set(entry.peer, hasPeer(operation.collective) ? operation.peer : ~0u);
  set(entry.lastPeer, ~0u);
  set(entry.communicator, claim_->index);
  set(entry.hash, uint16_t(isMessage ? 0 : operation.hash));
  set(entry.flags, flags);
  set(entry.collective, uint8_t(operation.collective));
  set(entry.call, uint8_t(uint32_t(operation.type) | uint32_t(operation.op) << 4));
  set(entry.algorithm, variant.algorithm);
  set(entry.protocol, variant.protocol);
  set(entry.channels, uint8_t(variant.channels));
  set(entry.stream, kUnknownStream);
  std::atomic_ref(entry.sequence).store(record, std::memory_order_release);
  return record;
}

void Recorder::refused(uint64_t record, uint64_t now) {
  ncclrunRecorderEntry* const entry = find(record);
  if (entry == nullptr) return;
  if (entry->collective == uint8_t(plan::Collective::sendRecv) && entry->peer < ranks_)
    ((entry->flags & ncclrunRecordSend) != 0 ? sent_ : received_)[entry->peer]--;
  ended(record, now, ncclrunRecordFailed);
}

const ncclrunRecorderEntry* Recorder::stamped(uint64_t record) const {
  ncclrunRecorderEntry* const entry = find(record);
  if (entry != nullptr) set(entry->flags, uint16_t(entry->flags | ncclrunRecordGpuStamp));
  return entry;
}

}  // namespace ncclrun
