// One direction of a connection between two ranks, carried by a Network: the proxy's side of a ring of slots. A sender
// sends each slot that the rank has published as one message, a header and the payload behind it; a receiver receives
// each message into the next free slot. Whoever holds its lock moves it: the rank's block while it waits, else the
// proxy's thread.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "datapath/step_call.h"
#include "net/net.h"
#include "net/proxy/device_ring.h"
#include "net/proxy/edge_record.h"
#include "plan/segment_format.h"

namespace ncclrun {

class NetConnection {
 public:
  struct Setup {
    net::Network& network;
    uint32_t device;  // of the network
    bool sends;
    uint32_t steps;
    uint32_t stepBytes;
    std::string peerName;                 // "rank 3 on host h2"
    std::atomic<int>& busy;               // counts the senders that are not idle
    std::optional<DeviceRing> ring = {};  // kernels play the block; outlives the connection
    uint32_t peer = 0;                    // this one and the next: for the flight recorder
    uint32_t channel = 0;
    std::shared_ptr<const RecorderClaim> recorder = {};  // null: without
  };
  // In front of each slot's payload, and on the wire.
  struct alignas(64) SlotHeader {
    uint32_t step = 0;   // low half of the step's number
    uint32_t bytes = 0;  // of payload; kEnd: the sender sends nothing more
    StepCall call;
    uint8_t isLL = 0;  // kernels: the sender's step is one of protocol LL, so the receiver's is
  };
  static constexpr uint32_t kEnd = ~0u;
  // Of the last message, which is only the beginning of a header: so its size alone tells it from a step.
  static constexpr size_t kEndBytes = offsetof(SlotHeader, call);

  // ncclSystemError if there is no memory for the ring.
  static Status make(const Setup& setup, std::unique_ptr<NetConnection>& out);
  ~NetConnection();
  NetConnection(const NetConnection&) = delete;
  NetConnection& operator=(const NetConnection&) = delete;

  Connection& ring() const { return ring_; }
  std::byte* firstSlot() const { return slots_ + sizeof(SlotHeader); }
  uint32_t slotStride() const { return uint32_t(stride_); }
  // By slot: the call of the step in it.
  StepCall* calls() const { return calls_.get(); }

  // By slot: where the payload of its step lies, in the caller's memory; null: in the slot. Null where the network
  // carries what lies in slots only. The block writes a sender's before it publishes the step, and reads a receiver's
  // when the step has arrived.
  std::byte** lent() const { return lends_ ? lent_.get() : nullptr; }
  // Receiver: the payload of that step, which the block reads next, is to arrive at `target` if it has so many bytes
  // and has not begun to arrive.
  void receiveInto(uint64_t step, std::byte* target, uint32_t bytes);
  // The memory is the caller's own again. A connection that still needs it fails.
  void forgetLent();

  // Receiver: begins to listen; `handle` is what the sender needs.
  Status listen(net::Handle& handle);
  // Sender: begins to connect. Does nothing from the second call on.
  void connectTo(const net::Handle& handle);

  enum class Extent { all, oneStep };
  // Moves what can be moved without blocking, of what has arrived perhaps one small step; returns at once where another
  // thread does. True if this call has filled or freed slots, or the connection has opened, ended or failed. For a
  // network that is not bound to a thread. After oneStep nobody may sleep: what followed the step was not looked for.
  bool advance(Extent extent = Extent::all);

  // The same, where another thread may be at it: waits for that one. True if it is idle then.
  bool settle();

  // The kernel has filled or freed slots since the last advance().
  bool hasDeviceNews() const { return deviceRing_.has_value() && deviceRing_->hasNews(ring_, sends_); }

  // Both directions of the same two ranks' connection are open: the network may carry them together. True as of
  // advance().
  static bool pair(NetConnection& sends, NetConnection& receives);

  bool isOpen() const { return open_.load(std::memory_order_acquire); }
  // The sender has sent its last message. Receiver: it has arrived, and all before it are in slots.
  bool hasEnded() const { return ended_.load(std::memory_order_acquire); }
  bool hasFailed() const { return failed_.load(std::memory_order_acquire); }
  // Why, where hasFailed().
  Status failure() const;
  // Sender: nothing waits to be carried. Receivers always are.
  bool isIdle() const { return !sends_ || ring_.head.load() == ring_.tail.load() || !isOpen(); }
  // Sender: tells the receiver that nothing more follows; true once the network has carried that, and what fill() asked
  // for, or cannot.
  bool sendEnd();
  // Sender: so many empty messages are to follow the last one.
  void fill(uint64_t messages);
  // Receiver whose connection has ended: receives that are still open, which only further messages complete.
  uint64_t openReceives() const;
  // Closes it, with whatever is under way. Not used afterwards.
  void close();

  // The proxy's thread has to move it: set by whoever goes to sleep or leaves something behind.
  std::atomic<bool> watched{false};

 private:
  static constexpr int kTag = 0;
  static constexpr uint64_t kMaxParts = 64;
  static constexpr size_t kSmallBytes = 16'384;

  NetConnection(const Setup& setup, Mapping memory);

  // The caller of all functions below holds mutex_. True if something has changed.
  bool move();
  bool moveRing();
  bool connect();
  bool accept();
  bool registerSlots(net::Connection& connection);
  Status registerGpuSlots(net::Connection& connection);
  void deregister(net::Connection* connection);
  bool sendSlots();
  bool sendLast();
  bool sendFillers();
  void drainReceives();
  bool receiveSlots();
  // A receive for every part of every free slot. stepBytes: of the largest step, with its header.
  Status postReceives(size_t stepBytes);
  // The steps for which receives are posted now. Where payloads may arrive in the caller's memory it says which, so
  // nothing is posted beyond the step it waits for.
  uint64_t stepsToPost() const;
  bool hasGpuSlots() const { return deviceRing_.has_value() && deviceRing_->gpu.has_value(); }
  Status takeArrivals();
  // Nothing is looked for behind a message of that many bytes that has arrived. Large ones are read as they come, so
  // that the other side can go on while the block works.
  bool endsEarly(size_t bytes) const { return extent_ == Extent::oneStep && bytes <= kSmallBytes; }
  // The message of that number has arrived: begins to make it visible to kernels where it is not.
  Status arrived(uint64_t message, size_t bytes);
  // Arrivals that are visible become steps. mayTest: the connection has not failed.
  bool publishArrivals(bool mayTest);
  // A part of a step has arrived in the step's slot.
  bool received(uint64_t step, uint64_t part, size_t bytes);
  // The payload of a step that has arrived lies where receiveInto() wanted it, or in its slot.
  void takeWanted(uint64_t step, uint32_t bytes);
  // Makes lines of a step of protocol LL where they are due. Returns false if it has none.
  bool expand(uint64_t step, const SlotHeader& header);
  // True, or why a step's first message is none.
  bool isStep(uint64_t step, size_t bytes);
  // Where the message of that number lies, counted from the first one; `bytes`: of its whole step, with the header.
  struct Part {
    std::byte* address;
    size_t bytes;
  };
  Part partOf(uint64_t message, size_t bytes) const;
  net::Request*& requestOf(uint64_t message) { return requests_[message % requests_.size()]; }
  bool fail(const Status& why);
  void count(bool isBusy);
  SlotHeader& headerOf(uint64_t step) const { return *reinterpret_cast<SlotHeader*>(slots_ + step % steps_ * stride_); }

  net::Network& network_;
  const uint32_t device_;
  const bool sends_;
  const uint32_t steps_, stepBytes_;
  const size_t stride_;
  // Where a network's messages are smaller than a slot, each step is as many messages as the largest one needs; those
  // that a smaller one does not need are empty. So a receiver can post them before it knows what comes.
  const size_t partBytes_;
  const uint64_t parts_;
  const std::string peerName_;
  std::atomic<int>& busy_;
  std::optional<DeviceRing> deviceRing_;
  const Mapping memory_;
  Connection& ring_;
  std::byte* const slots_;
  const std::unique_ptr<StepCall[]> calls_;

  const bool lends_;
  const std::unique_ptr<std::byte*[]> lent_;

  std::atomic<bool> open_{false}, ended_{false}, failed_{false};
  std::atomic<bool> requested_{false};  // asks the holder of the mutex to move once more before it returns
  mutable std::mutex mutex_;            // of what follows
  Status failure_;
  net::Registration registration_;
  bool isRegistered_ = false;
  std::unique_ptr<net::Listener> listener_;
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::Sender> sender_;
  std::unique_ptr<net::Receiver> receiver_;
  std::vector<net::Request*> requests_;
  // Receiver: the step that the block waits for, and where its payload is to go.
  struct Wanted {
    uint64_t step;
    net::Scatter scatter;
  };
  std::optional<Wanted> wanted_;
  uint64_t posted_ = 0;   // messages for which the network has a request, or had one
  uint64_t done_ = 0;     // of these, those that are complete
  uint64_t carried_ = 0;  // bytes of payload of steps that are complete
  struct Arrival {
    size_t bytes = 0;
    net::Request* flush = nullptr;
  };
  Arrival& arrivalOf(uint64_t message) { return arrivals_[message % arrivals_.size()]; }
  std::vector<Arrival> arrivals_;  // receiver: of messages that are complete
  uint64_t visible_ = 0;           // receiver: of these, those that kernels may see
  bool isEndSeen_ = false;         // receiver: the last message has come, and nothing more is tested
  Extent extent_ = Extent::all;    // receiver: of the call that holds the mutex
  alignas(64) SlotHeader end_;     // sender with slots in GPU memory: the last message
  net::Registration endRegistration_;
  bool isEndRegistered_ = false;
  net::Request* endRequest_ = nullptr;
  uint64_t fillers_ = 0;         // sender: empty messages to be sent
  bool hasDrainFailed_ = false;  // receiver: what is open stays so
  bool isCounted_ = false;       // in busy_
  EdgeRecord record_;
};

}  // namespace ncclrun
