// Protocol LL: a step is lines of 8 bytes, 4 of payload and 4 of flag, so that the data shows its own arrival and a
// small message moves only one cache line between cores; protocol Simple moves three (the slot, its size, the tail).
// The flag is the step's number, so that leftovers of an earlier step do not look like data.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plan/segment_format.h"

namespace ncclrun {

class LLLines {
 public:
  // One line is the step's head: the number of payload bytes in place of the payload.
  static constexpr uint32_t kPayloadBytes = (kLLStepBytes / 8 - 1) * 4;

  explicit LLLines(std::byte* shared) : lines_(reinterpret_cast<Line*>(shared)) {}

  // Buffer in which a sender assembles its payload and into which a receiver unpacks it.
  std::byte* buffer() { return buffer_; }
  uint32_t arrived() const { return arrived_; }

  // The head is stored last; it is the sender's half of Dekker's handshake with a receiver that falls asleep.
  void store(uint64_t step, uint32_t payload) {
    Line* const lines = at(step);
    const uint64_t flag = flagOf(step);
    for (uint32_t i = 0; i * 4 < payload; i++) {
      uint32_t data;
      __builtin_memcpy(&data, buffer_ + i * 4, sizeof data);
      lines[1 + i].store(flag | data, std::memory_order_relaxed);
    }
    lines[0].store(flag | payload, std::memory_order_seq_cst);
  }

  // True once the whole step has arrived and lies in buffer().
  bool look(uint64_t step) {
    const Line* const lines = at(step);
    const uint64_t flag = flagOf(step);
    const uint64_t head = lines[0].load(std::memory_order_seq_cst);
    if ((head & kFlagMask) != flag) return false;
    arrived_ = uint32_t(head);
    for (uint32_t i = 0; i * 4 < arrived_ && i * 4 < kPayloadBytes; i++) {
      const uint64_t line = lines[1 + i].load(std::memory_order_relaxed);
      if ((line & kFlagMask) != flag) return false;
      const auto data = uint32_t(line);
      __builtin_memcpy(buffer_ + i * 4, &data, sizeof data);
    }
    return true;
  }

 private:
  using Line = std::atomic<uint64_t>;
  static_assert(Line::is_always_lock_free && sizeof(Line) == 8);
  static constexpr uint64_t kFlagMask = 0xffffffff00000000u;

  // Never 0 for early steps: zeroed memory does not look like data.
  static uint64_t flagOf(uint64_t step) { return (step + 1) << 32; }
  Line* at(uint64_t step) const { return lines_ + step % kLLSteps * (kLLStepBytes / sizeof(Line)); }

  Line* const lines_;
  uint32_t arrived_ = 0;
  alignas(64) std::byte buffer_[kPayloadBytes + 4];
};

}  // namespace ncclrun
