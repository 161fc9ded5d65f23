// An endpoint whose connection a network carries: the block works on the proxy's ring, and moves it itself while it
// waits.
#pragma once
#include <atomic>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "net/endpoint.h"
#include "net/proxy/net_connection.h"

namespace ncclrun {

class NetEndpoint;

// What an endpoint asks of the transport that made it.
class NetEndpointOwner {
 public:
  // Moves the endpoint's connection, and what other senders have left behind. On the block's thread.
  virtual void moveFor(NetEndpoint& endpoint) = 0;
  // The block goes to sleep: from now on the proxy moves the connection, and rings.
  virtual void watch(NetEndpoint& endpoint) = 0;
  virtual Status whyGone(NetEndpoint& endpoint) = 0;

 protected:
  ~NetEndpointOwner() = default;
};

class NetEndpoint final : public Endpoint {
 public:
  NetEndpoint(const Facts& facts, const OwnCall& current, std::unique_ptr<NetConnection> connection,
              NetEndpointOwner& owner)
      : Endpoint(facts, current,
                 {.connection = connection->ring(),
                  .slots = connection->firstSlot(),
                  .stride = connection->slotStride(),
                  .bell = nullptr,
                  .calls = connection->calls(),
                  .moves = true,
                  .lent = connection->lent()}),
        connection_(std::move(connection)),
        owner_(owner) {}

  NetConnection& connection() const { return *connection_; }
  // Receiver: the call of the next step, or null if that step has not arrived.
  const StepCall* unread() const {
    const Connection& ring = connection_->ring();
    const uint64_t step = ring.head.load(std::memory_order_seq_cst);
    return ring.tail.load(std::memory_order_seq_cst) != step ? &connection_->calls()[step % facts().steps] : nullptr;
  }
  // The peer left in order before it called what is under way here.
  Status peerLeftInOrder() const { return leftInOrder(); }

  // True at most once in a millisecond: looking for the peer's goodbye takes a tenth of a small operation's time. On
  // the thread that runs the call.
  bool isDueToLook() {
    const uint64_t now = nowNanoseconds();
    if (now - lookedAt_ < kBetweenLooks) return false;
    lookedAt_ = now;
    return true;
  }

  // The peer's last message is on its way: the proxy moves the connection until it has come.
  void expectEnd() {
    endExpected_.store(true, std::memory_order_release);
    connection_->watched.store(true, std::memory_order_seq_cst);
  }
  bool isEndExpected() const { return endExpected_.load(std::memory_order_acquire); }
  std::atomic<bool> isPaired{false};    // with that of the other direction
  std::atomic<bool> isEndTaken{false};  // the receiver has the last message, and has told the sender
  // The proxy's thread alone.
  bool isEndSent = false;   // sender: has told the receiver that it comes
  bool isStopped = false;   // sender: the receiver leaves, and waits for the last message
  bool isOpenSent = false;  // receiver: has told the sender how many receives are still open
  bool isStopSent = false;  // receiver: has told the sender that it leaves

  void receiveInto(std::byte* target, uint32_t bytes) override { connection_->receiveInto(step(), target, bytes); }
  void forgetLent() override { connection_->forgetLent(); }
  void watch() override { owner_.watch(*this); }
  Status gone() override { return owner_.whyGone(*this); }

 protected:
  void move() override { owner_.moveFor(*this); }

 private:
  const std::unique_ptr<NetConnection> connection_;
  NetEndpointOwner& owner_;
  std::atomic<bool> endExpected_{false};
  static constexpr uint64_t kBetweenLooks = 1'000'000;
  uint64_t lookedAt_ = 0;  // nanoseconds
  friend class NetEndpointList;
  NetEndpoint* next_ = nullptr;  // set once, before the endpoint is in the list
};

// Endpoints that are only ever added: any thread goes through them without a lock, for (NetEndpoint& each : list).
class NetEndpointList {
 public:
  class Iterator {
   public:
    explicit Iterator(NetEndpoint* at) : at_(at) {}
    NetEndpoint& operator*() const { return *at_; }
    Iterator& operator++() {
      at_ = at_->next_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    NetEndpoint* at_;
  };
  Iterator begin() const { return Iterator(first_.load(std::memory_order_acquire)); }
  Iterator end() const { return Iterator(nullptr); }
  // One thread at a time. The endpoint outlives the list.
  void add(NetEndpoint& endpoint) {
    endpoint.next_ = first_.load(std::memory_order_relaxed);
    first_.store(&endpoint, std::memory_order_release);
  }

 private:
  std::atomic<NetEndpoint*> first_{nullptr};
};

}  // namespace ncclrun
