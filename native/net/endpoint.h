// One end of one direction of a connection, as a block uses it: a ring of slots that one side fills and the other
// empties. Used by one launch at a time. What differs between transports is who else touches the ring: the peer's
// process (shm), or the proxy, which plays the peer.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "datapath/step_call.h"
#include "net/ll.h"
#include "plan/plan_format.h"
#include "plan/segment.h"
#include "plan/segment_format.h"

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
    std::string peerName;  // "rank 3 on host h2"
  };
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const Facts& facts() const { return facts_; }
  // Payload that this rank has sent or received here, under any protocol. Any thread.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // The same end under protocol LL; itself where the transport carries whole slots only.
  virtual Endpoint& ll() { return *this; }

  // A sender's next slot is free; a receiver's next slot is full. Moves bytes itself where the transport needs it.
  bool ready() {
    if (limit_ != step_) return true;
    look();
    if (limit_ != step_ || !moves_) return limit_ != step_;
    move();
    look();
    return limit_ != step_;
  }
  // The block that needs this end goes to sleep: somebody else has to carry what comes, and ring.
  virtual void watch() {}
  // Success, or why the peer neither sends nor takes anything more here; what it has sent before can be received.
  // The error is ncclInvalidUsage where it left in order, else ncclRemoteError. On the thread that runs the call.
  virtual Status gone() { return {}; }
  // The call under way is one of all ranks.
  bool inCollective() const { return current_.call.isCollective(); }
  std::byte* slot() const { return lines_ != nullptr ? lines_->buffer() : slots_ + (step_ % facts_.steps) * stride_; }
  // Payload of a receiver's full slot.
  uint32_t arrived() const {
    if (lines_ != nullptr) return lines_->arrived();
    return connection_->stepBytes[step_ % facts_.steps].load(std::memory_order_relaxed);
  }

  // ---- Payloads in the user's memory, which need not be copied into a slot or out of it, where the transport can.
  bool lends() const { return lent_ != nullptr; }
  // Receiver: the next step's payload may arrive at `target` if it has so many bytes; payload() tells. On the thread
  // that runs the call, before it waits for the step.
  virtual void receiveInto(std::byte*, uint32_t) {}
  // Payload of a receiver's full slot.
  std::byte* payload() const {
    std::byte* const lent = lent_ == nullptr ? nullptr : lent_[step_ % facts_.steps];
    return lent == nullptr ? slot() : lent;
  }
  // Sender: nobody reads from the user's memory any more.
  bool hasSent() {
    if (lent_ == nullptr) return true;
    if (connection_->head.load(std::memory_order_seq_cst) != step_ && moves_) move();
    return connection_->head.load(std::memory_order_seq_cst) == step_;
  }
  // The call has ended early: nobody may touch the user's memory from here on.
  virtual void forgetLent() {}

  // That slot holds `payload` bytes of the call under way, as far as can be known.
  bool arrivedRight(uint32_t payload) const {
    return arrived() == payload && (calls_ == nullptr || sameCall(calls_[step_ % facts_.steps], current_.call));
  }
  // The sentence where it does not.
  std::string describeWrong(uint32_t payload) const;

  // Sender: hands the slot with `payload` bytes over. `lent`: they lie there, until hasSent(); null: in the slot.
  void publish(uint32_t payload, const std::byte* lent = nullptr) {
    const uint64_t sum = count(payload);
    if (lent_ != nullptr) lent_[step_ % facts_.steps] = const_cast<std::byte*>(lent);
    if (lines_ != nullptr) {
      lines_->store(step_++, payload);
    } else {
      Connection& c = *connection_;
      c.stepBytes[step_ % facts_.steps].store(payload, std::memory_order_relaxed);
      c.bytes.store(sum, std::memory_order_relaxed);
      if (calls_ != nullptr) calls_[step_ % facts_.steps] = current_.call;
      c.tail.store(++step_, std::memory_order_seq_cst);
    }
    passOn();
  }
  // Receiver: gives the slot back.
  void release() {
    count(arrived());
    step_++;
    if (lines_ == nullptr) {
      connection_->head.store(step_, std::memory_order_seq_cst);
      if (lent_ != nullptr) return;  // what comes next may be wanted elsewhere than in its slot
    } else {
      if (step_ % kLowLatencyCredit != 0) return;
      connection_->llHead.store(step_, std::memory_order_seq_cst);
    }
    passOn();
  }

 protected:
  // The peer left in order before it called what is under way here.
  Status leftInOrder() const;
  // The ring that an endpoint works on.
  struct Ring {
    Connection& connection;
    std::byte* slots;
    size_t stride;               // bytes from one slot to the next
    Doorbell* bell;              // the peer's; null if the peer does not look at this ring
    StepCall* calls;             // by slot; null where the transport does not carry that
    bool moves;                  // move() must be called for bytes to arrive or leave
    std::byte** lent = nullptr;  // by slot: where its payload lies; null where that is always the slot
  };
  // current: the call under way.
  Endpoint(const Facts& facts, const OwnCall& current, const Ring& ring)
      : facts_(facts),
        current_(current),
        connection_(&ring.connection),
        slots_(ring.slots),
        stride_(ring.stride),
        bell_(ring.bell),
        calls_(ring.calls),
        moves_(ring.moves),
        lent_(ring.lent),
        bytes_(ownBytes_) {
    step_ = facts.sends ? connection_->tail.load() : connection_->head.load();
    limit_ = step_;
  }
  // `simple` under protocol LL.
  Endpoint(Endpoint& simple, LLLines& lines)
      : facts_(simple.facts_),
        current_(simple.current_),
        connection_(simple.connection_),
        slots_(nullptr),
        stride_(0),
        lines_(&lines),
        bell_(simple.bell_),
        calls_(nullptr),
        moves_(false),
        lent_(nullptr),
        bytes_(simple.bytes_) {}
  // Carries what can be carried now without blocking.
  virtual void move() {}

  uint64_t step() const { return step_; }

 private:
  // A receiver tells the sender of every so many freed steps of LL at once.
  static constexpr uint64_t kLowLatencyCredit = kLLSteps / 2;

  void look() {
    if (lines_ != nullptr) {
      limit_ =
          facts_.sends ? connection_->llHead.load(std::memory_order_seq_cst) + kLLSteps : step_ + lines_->look(step_);
      return;
    }
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
    if (moves_) move();
  }

  const Facts facts_;
  const OwnCall& current_;
  Connection* const connection_;
  std::byte* const slots_;
  const size_t stride_;
  LLLines* const lines_ = nullptr;  // null: protocol Simple
  Doorbell* const bell_;
  StepCall* const calls_;
  const bool moves_;
  std::byte** const lent_;
  std::atomic<uint64_t> ownBytes_{0};
  std::atomic<uint64_t>& bytes_;  // one count for both protocols
  uint64_t step_ = 0;             // our next step
  uint64_t limit_ = 0;            // first step we may not take yet, as last seen
};

}  // namespace ncclrun
