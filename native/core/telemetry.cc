#include "core/telemetry.h"

#include <iterator>

namespace ncclrun {

void Telemetry::begin(const Operation& operation, uint64_t bytes) {
  if (slot_ == nullptr) return;
  const uint64_t now = nowNanoseconds();
  set(slot_->bytes, bytes);
  set(slot_->operationHash, operation.hash);
  set(slot_->startedNs, now);
  set(slot_->lastProgressNs, now);
  if (operation.collective != plan::Collective::sendRecv) {
    set(slot_->recentHashes[operation.hashed % std::size(slot_->recentHashes)], uint16_t(operation.hash));
    std::atomic_ref(slot_->hashed).store(operation.hashed, std::memory_order_release);
  }
  set(slot_->collective, uint32_t(operation.collective));
  set(slot_->call, uint32_t(operation.type) | uint32_t(operation.op) << 8 | operation.peer << 16);
  set(slot_->waitingFor, ~0u);
  set(slot_->state, uint32_t(ncclrunStateRunning));
  std::atomic_ref(slot_->operation).store(operation.number, std::memory_order_release);
}

void Telemetry::end(const Operation& operation, bool ok) {
  if (slot_ == nullptr) return;
  if (ok) set(slot_->completed, operation.number);
  set(slot_->state, uint32_t(ok ? ncclrunStateIdle : ncclrunStateFailed));
}

}  // namespace ncclrun
