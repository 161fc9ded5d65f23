// A connection over TCP: one socket carries one direction. Each endpoint has its own ring, and slots travel from the
// sender's ring to the receiver's. The block that waits or has just published carries them, else the proxy's thread.
// The proxy watches for incoming data only while the block sleeps: a proxy that woke for every packet would take the
// core from the block.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "base/descriptor.h"
#include "datapath/gone_peers.h"
#include "datapath/interrupt.h"
#include "net/endpoint.h"
#include "net/proxy.h"
#include "net/socket/hello.h"

namespace ncclrun {

class SocketEndpoint final : public Endpoint, public Pollable {
 public:
  struct Setup {
    Facts facts;
    const OwnCall& current;  // the call in progress
    std::shared_ptr<Proxy> proxy;
    Interrupt& interrupt;
    Doorbell& own;  // this rank's doorbell, rung when a slot has arrived or has been sent
    const GonePeers& gonePeers;
  };
  // Returns ncclSystemError if there is no memory for the ring.
  static Status make(const Setup& setup, std::unique_ptr<SocketEndpoint>& out);
  ~SocketEndpoint() override;

  // Sender: connects to the receiver's listener and sends a hello. Failures raise the interrupt.
  void connect(std::string_view address, uint32_t port, const socket::Hello& hello);
  // Receiver: takes over a connection whose hello was valid and sends the welcome. Returns false if it has a connection
  // already.
  bool adopt(Descriptor& connection);

  bool connected() const { return open_.load(std::memory_order_acquire); }
  // True if no slot waits to be sent.
  bool idle() const { return !facts().sends || !connected() || ring_.head.load() == ring_.tail.load(); }

  // Receiver: the call of the next step, or null if that step has not arrived.
  const StepCall* unread() const;

  // Sends the goodbye. Returns -1 if it is sent or cannot be sent, else the socket that has no room for it yet. From
  // the first call on, the proxy no longer watches the socket.
  int sendGoodbye();

  void watch() override;
  Status gone() override;
  void onEvents(uint32_t events) override;

 protected:
  void move() override;

 private:
  SocketEndpoint(const Setup& setup, Mapping memory, std::unique_ptr<StepCall[]> calls);

  // The caller of all functions below holds mutex_.
  void carry();
  void handshake();
  void connectionRefused();
  void retryAfter(int error);
  // Return false if the connection has failed.
  bool beginConnecting();
  bool scheduleRetry(int error);
  void watchConnecting();
  void sendSlots();
  void receiveSlots();
  bool receiveHeader();
  // Receives at most `bytes` bytes and returns their number; 0 if there are none now or the connection has ended.
  size_t receiveSome(void* to, size_t bytes);
  std::byte* slotOf(uint64_t step) const { return slots_ + (step % facts().steps) * facts().stepBytes; }
  // True if a further attempt to connect may succeed, or an agent may still report that the refusing peer has left.
  bool shouldRetry(int error) const;
  // Status with which waits for the peer end after its goodbye.
  Status goodbyeStatus() const;
  // Receives more of a goodbye that has begun to arrive.
  void receiveGoodbye();
  // Handles the loss of the connection: a receiver fails when it needs the connection, a sender fails at once.
  void lost(const std::string& why);
  // Handles a peer that has said goodbye without receiving everything.
  void peerLeftEarly();
  // Raises the interrupt, so that the communicator fails at once.
  void fail(const std::string& why);
  std::string describeLoss(const std::string& why) const;

  const Mapping memory_;
  const std::unique_ptr<StepCall[]> calls_;  // by slot
  Connection& ring_;
  std::byte* const slots_;
  const std::shared_ptr<Proxy> proxy_;
  Interrupt& interrupt_;
  Doorbell& ownBell_;

  std::atomic<bool> peerSent_{false};        // sender: the peer has sent its goodbye or has ended the connection
  std::atomic<bool> carryRequested_{false};  // asks the holder of the mutex to carry once more before it returns
  mutable std::mutex mutex_;
  Descriptor socket_;
  std::atomic<bool> open_{false};
  std::atomic<bool> peerLeft_{false};  // the peer's goodbye has arrived
  std::atomic<bool> closed_{false};    // the socket carries nothing more
  std::string lostReason_;
  bool refused_ = false;
  std::string address_;
  uint32_t port_ = 0;
  uint64_t connectStart_ = 0;
  bool waitsToRetry_ = false;  // socket_ holds the timer of the next attempt to connect
  socket::Hello hello_{};
  size_t helloDone_ = 0;
  socket::SlotHeader header_{};  // of the slot in transfer, or the receiver's welcome
  size_t headerDone_ = 0;
  size_t payloadDone_ = 0;
  bool leaving_ = false;       // the proxy no longer watches the socket
  socket::Goodbye goodbye_{};  // this rank's once it leaves, the peer's before
  size_t goodbyeDone_ = 0;
  const GonePeers& gonePeers_;
};

}  // namespace ncclrun
