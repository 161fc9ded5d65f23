// What of a connection over verbs belongs to one port: its queue pairs and their completions, and the registration of
// the area. A connection that moves to another port gets a new one.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "net/verbs/introduction.h"
#include "net/verbs/queue_pair.h"

namespace ncclrun::net {

class VerbsNetwork;

class VerbsPath {
 public:
  // `area` outlives it.
  static Status make(VerbsNetwork& network, uint32_t device, std::span<std::byte> area,
                     std::unique_ptr<VerbsPath>& out);
  ~VerbsPath();
  VerbsPath(const VerbsPath&) = delete;
  VerbsPath& operator=(const VerbsPath&) = delete;

  // `sends`: messages, and not their advertisements.
  Status createQueuePairs(uint32_t count, bool splits, bool sends);
  // For the other side.
  Introduction introduction(bool splits) const;
  // The queue pairs receive and send from then on.
  Status connect(const Introduction& peer);
  // Nothing more is sent or received: what is posted completes with an error.
  void stop();

  // Reads a byte of registered memory through the card, into the end of the area: what the card had written there
  // before has arrived when the completion with this id comes.
  Status readBack(uint64_t id, uint64_t address, uint32_t remoteKey);
  void readBackComplete() { loop_->sendsComplete(1); }

  uint32_t device() const { return device_; }
  const std::shared_ptr<Card>& card() const { return card_; }
  const PortAddress& own() const { return own_; }
  std::span<const std::unique_ptr<QueuePairHandle>> queuePairs() const { return pairs_; }
  verbs::CompletionQueue& completions() const { return *completions_; }
  // Its network may route packets of a queue pair differently: the immediate of a message of so many bytes travels
  // alone.
  bool announcesApart(size_t bytes) const;
  uint32_t maxWrite() const { return maxWrite_; }  // bytes of one request
  uint32_t areaKey() const { return areaRegion_->region->localKey; }
  // Why the port cannot be used, or an event has ended a queue pair; empty: neither.
  std::string defect() const;
  // Only the port is down: what the card has to send may still arrive.
  bool mayRecover() const;

 private:
  VerbsPath(VerbsNetwork& network, uint32_t device, std::span<std::byte> area);
  Status open();

  VerbsNetwork& network_;
  const uint32_t device_;
  const std::span<std::byte> area_;
  const std::shared_ptr<Card> card_;
  RegisteredRegion* areaRegion_ = nullptr;
  verbs::CompletionQueue* completions_ = nullptr;
  std::vector<std::unique_ptr<QueuePairHandle>> pairs_;
  std::unique_ptr<QueuePairHandle> loop_;  // connected to itself; made when it is first needed
  PortAddress own_ = {};
  int gidIndex_ = 0;
  uint32_t maxWrite_ = 0;
  uint32_t firstPsn_ = 0;
};

}  // namespace ncclrun::net
