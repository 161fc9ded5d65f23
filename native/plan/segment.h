// The host segment as one local rank has it mapped, and the doorbells in it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "plan/plan_view.h"
#include "plan/segment_format.h"

namespace ncclrun {

class Segment {
 public:
  Segment() = default;
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Maps the segment the plan describes. ncclSystemError if the memory is smaller than the plan says or cannot be
  // mapped.
  Status map(int fd, const PlanView& plan);

  AbortBlock& abortBlock() const { return *at<AbortBlock>(plan_->header().abortOffset); }
  Doorbell& doorbell(uint32_t local) const {
    return *at<Doorbell>(plan_->header().doorbellOffset + local * sizeof(Doorbell));
  }
  NodeBarrier& barrier() const { return *at<NodeBarrier>(plan_->header().barrierOffset); }
  // Of a communicator of GPUs only; right behind the barrier.
  DeviceRecord& deviceRecord(uint32_t local) const {
    return *at<DeviceRecord>(plan_->header().barrierOffset + sizeof(NodeBarrier) + local * sizeof(DeviceRecord));
  }
  // Of a communicator of GPUs: behind those, of the pair of one local rank and another.
  CopyFlags& copyFlags(uint32_t from, uint32_t to) const {
    return *at<CopyFlags>(pairsOffset() + pairNumber(from, to) * sizeof(CopyFlags));
  }
  // From the abort block on, as far as GPUs look and write.
  uint64_t sharedWithGpus() const {
    const uint64_t pairs = uint64_t(plan_->header().localRanks) * plan_->header().localRanks;
    return pairsOffset() + pairs * sizeof(CopyFlags) - plan_->header().abortOffset;
  }
  AgreementTable agreements() const {
    const uint32_t ranks = plan_->header().localRanks;
    return {at<AgreementRecord>(pairsOffset() + uint64_t(ranks) * ranks * sizeof(CopyFlags)), ranks};
  }
  // Of a communicator of GPUs: where one direction between two local ranks lies if their GPUs cannot share memory.
  std::byte* pairMemory(uint32_t fromLocal, uint32_t toLocal) const {
    return base_ + plan_->pairOffset(fromLocal, toLocal);
  }
  // This rank leaves in order after so many collectives: peers that wait for it wake up and see it.
  void leave(uint32_t local, uint64_t collectives) const;
  // It has aborted the communicator, unless it had left.
  void leaveAborted(uint32_t local) const;
  Connection& connection(uint64_t offset) const { return *at<Connection>(offset); }

 private:
  void ringAll() const;
  uint64_t pairNumber(uint32_t from, uint32_t to) const { return uint64_t(from) * plan_->header().localRanks + to; }
  uint64_t pairsOffset() const {
    const uint64_t records = plan_->header().barrierOffset + sizeof(NodeBarrier);
    return records + plan_->header().localRanks * sizeof(DeviceRecord);
  }
  template <class T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
  const PlanView* plan_ = nullptr;
};

constexpr uint64_t kForEver = ~uint64_t(0);
// Sleeps while `word` holds `seen`; may wake for no reason. The word may be shared between processes. False when
// `nanoseconds` have passed.
bool futexWait(std::atomic<uint32_t>& word, uint32_t seen, uint64_t nanoseconds = kForEver);
void futexWakeAll(std::atomic<uint32_t>& word);

// Wakes whoever sleeps on the doorbell. What was changed before must have been a seq_cst store: that store and this
// load are one half of Dekker's handshake, the sleeper's `sleepers` increment and its last look are the other.
inline void ring(Doorbell& bell) {
  if (bell.sleepers.load(std::memory_order_seq_cst) == 0) return;
  bell.sequence.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(bell.sequence);
}

}  // namespace ncclrun
