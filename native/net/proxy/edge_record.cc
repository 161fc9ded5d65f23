#include "net/proxy/edge_record.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/stamp_clock.h"

namespace ncclrun {
namespace {

// The agent reads while we write: no field may tear.
template <typename Field>
void store(Field& field, Field value) {
  std::atomic_ref<Field>(field).store(value, std::memory_order_relaxed);
}

// A free place, marked as being written; null: there is none.
ncclrunRecorderEdge* take(ncclrunRecorder& memory, uint64_t& sequence) {
  static std::atomic<uint64_t> last{0};
  for (ncclrunRecorderEdge& edge : memory.edges) {
    std::atomic_ref free(edge.sequence);
    uint64_t none = 0;
    if (free.load(std::memory_order_relaxed) != none) continue;
    sequence = last.fetch_add(2, std::memory_order_relaxed) + 2;
    if (free.compare_exchange_strong(none, sequence + 1, std::memory_order_acq_rel)) return &edge;
  }
  return nullptr;
}

}  // namespace

EdgeRecord::EdgeRecord(std::shared_ptr<const RecorderClaim> claim, const Facts& facts) : claim_(std::move(claim)) {
  if (claim_ == nullptr) return;
  uint64_t sequence = 0;
  edge_ = take(*claim_->memory, sequence);
  if (edge_ == nullptr) return;
  for (uint64_t* const counter : {&edge_->handed, &edge_->carried, &edge_->bytes, &edge_->busyNs, &edge_->lastNs,
                                  &edge_->wireBytes, &edge_->wireBusyNs})
    store(*counter, uint64_t{0});
  store(edge_->retransmits, uint32_t{0});
  store(edge_->peer, facts.peer);
  store(edge_->communicator, claim_->index);
  store(edge_->channel, uint16_t(facts.channel));
  store(edge_->sends, uint8_t(facts.sends));
  for (size_t i = 0; i < sizeof edge_->nic; i++) {
    store(edge_->nic[i], i < facts.nic.size() && i + 1 < sizeof edge_->nic ? facts.nic[i] : '\0');
  }
  std::atomic_ref(edge_->sequence).store(sequence, std::memory_order_release);
}

EdgeRecord::~EdgeRecord() {
  if (edge_ != nullptr) std::atomic_ref(edge_->sequence).store(0, std::memory_order_release);
}

void EdgeRecord::update(uint64_t handed, uint64_t carried, uint64_t bytes, const net::Sender* sender) {
  if (edge_ == nullptr || (handed == handed_ && carried == carried_)) return;
  const uint64_t now = StampClock::now();
  if (sender != nullptr) {
    if (countedUntil_ != 0) busyNanoseconds_ += now - std::min(now, countedUntil_);
    countedUntil_ = handed == carried ? 0 : now;
    store(edge_->busyNs, busyNanoseconds_);
  }
  if (carried != carried_) store(edge_->lastNs, now);
  store(edge_->bytes, bytes);
  store(edge_->handed, handed_ = handed);
  store(edge_->carried, carried_ = carried);
  if (sender == nullptr || now - std::min(now, askedAt_) < kTrafficNanoseconds) return;
  askedAt_ = now;
  const std::optional<net::Traffic> traffic = sender->traffic();
  if (!traffic.has_value()) return;
  store(edge_->wireBytes, traffic->bytes);
  store(edge_->wireBusyNs, traffic->busyNanoseconds);
  store(edge_->retransmits, traffic->retransmits);
}

}  // namespace ncclrun
