// A connection over TCP: one socket carries one direction. Each end has a ring of its own; slots travel from the
// sender's to the receiver's. Whoever has time carries them: the block that waits or has just published, else the
// proxy's thread. What comes in that thread is told of only when the block has fallen asleep: woken for every packet it
// would take the core from the block.
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
    const OwnCall& current;  // the call under way
    std::shared_ptr<Proxy> proxy;
    Interrupt& interrupt;
    Doorbell& own;  // rung when a slot arrived or was sent: this rank waits for that
    const GonePeers& gonePeers;
  };
  // ncclSystemError if there is no memory for the ring.
  static Status make(const Setup& setup, std::unique_ptr<SocketEndpoint>& out);
  ~SocketEndpoint() override;

  // Sender: connects to the receiver's listener and introduces itself. Failures go to the interrupt.
  void connect(std::string_view address, uint32_t port, const socket::Hello& hello);
  // Receiver: takes over a connection whose hello was right and answers it. False if it has one already.
  bool adopt(Descriptor& connection);

  bool connected() const { return open_.load(std::memory_order_acquire); }
  // Nothing waits to be given to the kernel.
  bool idle() const { return !facts().sends || !connected() || ring_.head.load() == ring_.tail.load(); }

  // Receiver: the call of the next step, if that has come.
  const StepCall* unread() const;

  // Tells the peer that nothing follows. -1: said, or there is nobody to hear it; else the descriptor that has no room
  // for it yet. From the first call on the proxy does not touch it any more.
  int sayFarewell();

  void watch() override;
  Status gone() override;
  void onEvents(uint32_t events) override;

 protected:
  void move() override;

 private:
  SocketEndpoint(const Setup& setup, Mapping memory, std::unique_ptr<StepCall[]> calls);

  // All below with mutex_ held.
  void carry();
  void introduce();
  void refused();
  void pauseAfter(int error);
  // False: the connection is broken.
  bool beginConnecting();
  bool beginPause(int error);
  void watchConnecting();
  void sendSlots();
  void receiveSlots();
  bool receiveHeader();
  // recv() of at most `bytes`: how many came; 0: none now, or the connection is over.
  size_t take(void* to, size_t bytes);
  std::byte* slotOf(uint64_t step) const { return slots_ + (step % facts().steps) * facts().stepBytes; }
  // True while the peer, which refuses connections, may yet be said to have left.
  bool triesAgain(int error) const;
  // What those who wait for the peer get, which has said farewell.
  Status farewell() const;
  // What has come of the farewell's rest.
  void hearFarewell();
  // The connection serves no more: a receiver fails when it needs it, a sender at once.
  void lost(const std::string& why);
  // The peer said farewell, and took not all.
  void sentInVain();
  // The communicator fails at once.
  void broken(const std::string& why);
  std::string nameOf(const std::string& why) const;

  const Mapping memory_;
  const std::unique_ptr<StepCall[]> calls_;  // by slot
  Connection& ring_;
  std::byte* const slots_;
  const std::shared_ptr<Proxy> proxy_;
  Interrupt& interrupt_;
  Doorbell& own_;

  std::atomic<bool> heard_{false};   // the peer of a sender said something: the farewell, or the end
  std::atomic<bool> wanted_{false};  // somebody wants carry(); whoever holds the mutex looks again after giving it back
  mutable std::mutex mutex_;
  Descriptor socket_;
  std::atomic<bool> open_{false};
  std::atomic<bool> left_{false};  // the peer said farewell
  std::atomic<bool> over_{false};  // nothing more can be carried
  std::string lostBecause_;
  bool refused_ = false;
  std::string address_;
  uint32_t port_ = 0;
  uint64_t begunAt_ = 0;
  bool pauses_ = false;  // before it connects again
  socket::Hello hello_{};
  size_t helloDone_ = 0;
  socket::SlotHeader header_{};  // of the slot under way, or what the receiver answers
  size_t headerDone_ = 0;
  size_t payloadDone_ = 0;
  bool leaves_ = false;          // the proxy does not watch it any more
  socket::Farewell farewell_{};  // ours once we leave, the peer's before
  size_t farewellDone_ = 0;
  const GonePeers& gonePeers_;
};

}  // namespace ncclrun
