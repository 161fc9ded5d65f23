#include "datapath/telemetry.h"

#include <iterator>

namespace ncclrun {

namespace {

uint32_t callOf(const Operation& operation) {
  return uint32_t(operation.type) | uint32_t(operation.op) << 8 | operation.peer << 16;
}

}  // namespace

void Telemetry::called(const Operation& operation, uint64_t bytes) {
  if (slot_ == nullptr || operation.collective == plan::Collective::sendRecv) return;
  set(slot_->recentHashes[operation.hashed % std::size(slot_->recentHashes)], uint16_t(operation.hash));
  set(slot_->hashedBytes, bytes);
  set(slot_->hashedCollective, uint32_t(operation.collective));
  set(slot_->hashedCall, callOf(operation));
  std::atomic_ref(slot_->hashed).store(operation.hashed, std::memory_order_release);
}

uint64_t Telemetry::begin(const Operation& operation, uint64_t bytes) {
  if (slot_ == nullptr) return 0;
  const uint64_t now = stampNanoseconds();
  set(slot_->bytes, bytes);
  set(slot_->operationHash, operation.hash);
  set(slot_->startedNs, now);
  set(slot_->lastProgressNs, now);
  set(slot_->collective, uint32_t(operation.collective));
  set(slot_->call, callOf(operation));
  set(slot_->waitingFor, ~0u);
  set(slot_->state, uint32_t(ncclrunStateRunning));
  std::atomic_ref(slot_->operation).store(operation.number, std::memory_order_release);
  return now;
}

void Telemetry::end(const Operation& operation, bool ok) {
  if (slot_ == nullptr) return;
  if (ok) set(slot_->completed, operation.number);
  set(slot_->state, uint32_t(ok ? ncclrunStateIdle : ncclrunStateFailed));
}

}  // namespace ncclrun
