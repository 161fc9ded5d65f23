// One end of one direction of a connection, as a block uses it: a ring of slots that one side fills and the other
// empties. Used by one launch at a time. What differs between transports is who else touches the ring: the peer's
// process (shm), or a thread that carries the slots over a socket.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/plan_format.h"
#include "core/segment.h"
#include "core/segment_format.h"

namespace ncclrun {

inline constexpr uint32_t kPairChannel = ~0u;

class Endpoint {
 public:
  struct Facts {
    uint32_t peer;
    uint32_t channel;  // kPairChannel: the connection of two ranks
    bool sends;
    plan::Transport transport;
    uint32_t steps;
    uint32_t stepBytes;
  };
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const Facts& facts() const { return facts_; }
  // Payload that this rank has sent or received here. Any thread.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // A sender's next slot is free; a receiver's next slot is full. Moves bytes itself where the transport needs it.
  bool ready() {
    if (limit_ != step_) return true;
    look();
    if (limit_ != step_ || !moves_) return limit_ != step_;
    move(true);
    look();
    return limit_ != step_;
  }
  std::byte* slot() const { return slots_ + (step_ % facts_.steps) * facts_.stepBytes; }
  // Payload of a receiver's full slot.
  uint32_t arrived() const { return connection_->stepBytes[step_ % facts_.steps].load(std::memory_order_relaxed); }

  // Sender: hands the slot with `payload` bytes over.
  void publish(uint32_t payload) {
    Connection& c = *connection_;
    c.stepBytes[step_ % facts_.steps].store(payload, std::memory_order_relaxed);
    c.bytes.store(count(payload), std::memory_order_relaxed);
    c.tail.store(++step_, std::memory_order_seq_cst);
    passOn();
  }
  // Receiver: gives the slot back.
  void release() {
    count(arrived());
    connection_->head.store(++step_, std::memory_order_seq_cst);
    passOn();
  }

 protected:
  // moves: move() must be called for bytes to arrive or leave. bell: the peer's, null if the peer does not look at this
  // ring.
  Endpoint(const Facts& facts, Connection& connection, Doorbell* bell, bool moves)
      : facts_(facts),
        connection_(&connection),
        slots_(reinterpret_cast<std::byte*>(&connection) + kConnectionHeaderBytes),
        bell_(bell),
        moves_(moves) {
    step_ = facts.sends ? connection.tail.load() : connection.head.load();
    limit_ = step_;
  }
  // Carries what can be carried now without blocking. waiting: a block cannot go on without it.
  virtual void move(bool /*waiting*/) {}

 private:
  void look() {
    limit_ = facts_.sends ? connection_->head.load(std::memory_order_seq_cst) + facts_.steps
                          : connection_->tail.load(std::memory_order_seq_cst);
  }
  uint64_t count(uint32_t payload) {
    const uint64_t sum = bytes_.load(std::memory_order_relaxed) + payload;
    bytes_.store(sum, std::memory_order_relaxed);
    return sum;
  }
  void passOn() {
    if (bell_ != nullptr) ring(*bell_);
    if (moves_) move(false);
  }

  const Facts facts_;
  Connection* const connection_;
  std::byte* const slots_;
  Doorbell* const bell_;
  const bool moves_;
  uint64_t step_ = 0;  // our next step
  std::atomic<uint64_t> bytes_{0};
  uint64_t limit_ = 0;  // first step we may not take yet, as last seen
};

}  // namespace ncclrun
