// One communicator's writer of the process's flight recorder (native/include/ncclrun.h). Any thread may write; each
// entry has one writer at a time. Readers are other processes, which check each entry's sequence.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "datapath/data_path.h"
#include "ncclrun.h"
#include "plan/plan_format.h"

namespace ncclrun {

class Recorder {
 public:
  // `claim` may be null: then nothing is written.
  Recorder(std::shared_ptr<const RecorderClaim> claim, uint32_t ranks);

  // A call was made, at `now`: returns the number of its record, 0 for none. Calls of one communicator come one at a
  // time.
  uint64_t enqueued(const Operation& operation, const plan::VariantRecord& variant, uint16_t flags, uint64_t now);
  // The call could not be queued, at `now`. The program may repeat it: a message keeps its number.
  void refused(uint64_t record, uint64_t now);
  // A kernel will write when it begins and ends. Returns the entry; null: the ring has wrapped over it.
  const ncclrunRecorderEntry* stamped(uint64_t record) const;
  // Its first step, at `now`.
  void started(uint64_t record, uint64_t now) const {
    if (ncclrunRecorderEntry* const entry = find(record)) set(entry->startedNs, now);
  }
  // About to sleep until `rank` does something.
  void waiting(uint64_t record, uint32_t rank) const {
    if (ncclrunRecorderEntry* const entry = find(record)) set(entry->lastPeer, rank);
  }
  // It ended at `now`; `flags` say how, where it did not end well.
  void ended(uint64_t record, uint64_t now, uint16_t flags = 0) const {
    ncclrunRecorderEntry* const entry = find(record);
    if (entry == nullptr) return;
    if (flags != 0) set(entry->flags, uint16_t(entry->flags | flags));
    set(entry->endedNs, now);
  }
  bool isOn() const { return memory_ != nullptr; }
  ncclrunRecorder* memory() const { return memory_; }
  uint16_t communicator() const { return claim_->index; }

 private:
  template <class T>
  static void set(T& field, T value) {
    std::atomic_ref<T>(field).store(value, std::memory_order_relaxed);
  }
  // Null once the ring has wrapped over it.
  ncclrunRecorderEntry* find(uint64_t record) const {
    if (record == 0 || memory_ == nullptr) return nullptr;
    ncclrunRecorderEntry& entry = memory_->entries[(record - 1) % NCCLRUN_RECORDER_ENTRIES];
    return std::atomic_ref(entry.sequence).load(std::memory_order_relaxed) == record ? &entry : nullptr;
  }
  uint32_t numberOf(const Operation& operation);

  const std::shared_ptr<const RecorderClaim> claim_;
  ncclrunRecorder* const memory_;
  // Messages so far by peer, once there is one; both ends of an ordered pair count alike.
  std::vector<uint32_t> sent_, received_;
  const uint32_t ranks_;
};

}  // namespace ncclrun
