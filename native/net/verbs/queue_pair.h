// A queue pair of a reliable connection, with how many of its send requests are free.
#pragma once
#include <atomic>
#include <memory>

#include "base/error.h"
#include "net/verbs/card.h"
#include "net/verbs/introduction.h"
#include "net/verbs/tuning.h"

namespace ncclrun::net {

// "queue pair 17: the path's packets are not acknowledged …": what a completion's or event's number means.
std::string explainCompletion(int status, uint32_t vendorError);
std::string explainEvent(int event);
// "::ffff:10.0.0.1"
std::string textOf(const verbs::Gid& gid);
// False: it is none.
bool parseGid(const std::string& text, verbs::Gid& gid);

class QueuePairHandle {
 public:
  static constexpr uint32_t kSends = 512, kReceives = 320;

  // In the state INIT, over `port`. Its completions come to `completions`.
  static Status make(Card& card, uint8_t port, verbs::CompletionQueue& completions, const VerbsTuning& tuning,
                     std::unique_ptr<QueuePairHandle>& out);
  ~QueuePairHandle();
  QueuePairHandle(const QueuePairHandle&) = delete;
  QueuePairHandle& operator=(const QueuePairHandle&) = delete;

  uint32_t number() const { return pair_->number; }
  uint32_t inlineBytes() const { return inlineBytes_; }
  // An event that has ended it; 0: none.
  int event() const { return event_.load(std::memory_order_acquire); }

  struct Peer {
    PortAddress port;
    uint32_t number;
    uint32_t psn;
  };
  // To INIT → RTR → RTS: from then on it receives and sends.
  Status connect(const Peer& peer, const PortAddress& own, int gidIndex, uint32_t psn);
  // Nothing is sent or received any more; what is posted completes with an error.
  void stop();

  // Send requests that may still be posted. Each chain that ends with a signaled request takes some, and gives them
  // back when the completion of that one has come.
  uint32_t freeSends() const { return freeSends_; }
  // Posts a chain of `count` requests.
  Status postSends(verbs::SendWorkRequest& first, uint32_t count);
  void sendsComplete(uint32_t count) { freeSends_ += count; }
  // A receive without memory of its own: for an immediate.
  Status postReceive(uint64_t id);

 private:
  QueuePairHandle(Card& card, uint8_t port, const VerbsTuning& tuning) : card_(card), port_(port), tuning_(tuning) {}
  Status modify(verbs::QueuePairAttributes attributes, int mask, const char* what);

  Card& card_;
  const uint8_t port_;
  const VerbsTuning tuning_;
  verbs::QueuePair* pair_ = nullptr;
  std::atomic<int> event_{0};
  uint32_t inlineBytes_ = 0;
  uint32_t freeSends_ = kSends;
};

}  // namespace ncclrun::net
