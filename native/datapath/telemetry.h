// One communicator's slot of the telemetry page. Writes only, relaxed: whoever reads it may see a mixture of two
// moments, never garbage.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/stamp_clock.h"
#include "datapath/data_path.h"
#include "datapath/recorder.h"
#include "ncclrun.h"

namespace ncclrun {

class Telemetry {
 public:
  // `slot` may be null: then nothing is written.
  explicit Telemetry(ncclrunTelemetrySlot* slot) : slot_(slot) {}

  void queued() {
    if (slot_ != nullptr && get(slot_->state) == ncclrunStateIdle) set(slot_->state, uint32_t(ncclrunStateQueued));
  }
  // Returns the time that it wrote, or 0.
  uint64_t begin(const Operation& operation, uint64_t bytes);
  // It takes its turn among the collectives that the ranks' agent compares; nothing of a send or receive.
  void called(const Operation& operation, uint64_t bytes);
  void end(const Operation& operation, bool ok);
  // A step moved.
  void progress() {
    if (slot_ == nullptr) return;
    set(slot_->lastProgressNs, stampNanoseconds());
    if (get(slot_->state) != ncclrunStateWaiting) return;
    set(slot_->state, uint32_t(ncclrunStateRunning));
    set(slot_->waitingFor, ~0u);
  }
  // About to sleep until `rank` does something; ~0: not known who.
  void waiting(uint32_t rank) {
    if (recorder_ != nullptr && rank != ~0u) recorder_->waiting(record_, rank);
    if (slot_ == nullptr) return;
    set(slot_->waitingFor, rank);
    set(slot_->state, uint32_t(ncclrunStateWaiting));
  }
  // When a step moved last, if that was after `begun`; else 0.
  uint64_t progressAfter(uint64_t begun) const {
    const uint64_t last = slot_ != nullptr ? get(slot_->lastProgressNs) : 0;
    return last > begun ? last : 0;
  }
  // Waits from now on belong to this record too; `recorder` outlives them.
  void waitsFor(const Recorder* recorder, uint64_t record) {
    recorder_ = recorder;
    record_ = record;
  }
  // The calling thread is about to sleep beside the queue, which has more to say if it does anything. True if that is
  // said now, until rested().
  bool waitingIdly(uint64_t sinceNanoseconds) {
    if (slot_ == nullptr || get(slot_->state) != ncclrunStateIdle) return false;
    set(slot_->lastProgressNs, sinceNanoseconds);
    set(slot_->waitingFor, ~0u);
    return exchange(ncclrunStateIdle, ncclrunStateWaiting);
  }
  void rested() {
    if (slot_ != nullptr) exchange(ncclrunStateWaiting, ncclrunStateIdle);
  }
  // Its communicator is no more, though kernels may still write here.
  void left() {
    if (slot_ != nullptr) set(slot_->left, 1u);
  }
  // The program is told that it failed because `rank` was lost.
  void lost(uint32_t rank) {
    if (slot_ != nullptr) set(slot_->lostPeer, rank + 1);
  }

 private:
  template <class T>
  static void set(T& field, T value) {
    std::atomic_ref<T>(field).store(value, std::memory_order_relaxed);
  }
  template <class T>
  static T get(T& field) {
    return std::atomic_ref<T>(field).load(std::memory_order_relaxed);
  }
  bool exchange(uint32_t from, uint32_t to) {
    return std::atomic_ref(slot_->state).compare_exchange_strong(from, to, std::memory_order_relaxed);
  }
  ncclrunTelemetrySlot* const slot_;
  const Recorder* recorder_ = nullptr;
  uint64_t record_ = 0;
};

}  // namespace ncclrun
