// What both sides of a connection over verbs have: queue pairs over one port, their completions, an area that the other
// side writes to, and the authenticated socket by which they were introduced. Its owner calls it on one thread at a
// time.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "net/net.h"
#include "net/verbs/control_socket.h"
#include "net/verbs/introduction.h"
#include "net/verbs/queue_pair.h"

namespace ncclrun::net {

class VerbsNetwork;

inline constexpr size_t kCompletionsAtOnce = 16;  // that a poll takes

class VerbsLink {
 public:
  struct Setup {
    VerbsNetwork& network;
    uint32_t device;
    bool sends;
    Descriptor control;
    std::string peer;  // "10.0.0.2 port 4000"
  };
  explicit VerbsLink(Setup setup);
  ~VerbsLink();
  VerbsLink(const VerbsLink&) = delete;
  VerbsLink& operator=(const VerbsLink&) = delete;

  // Introduces the sides to each other. ready: the first message may come.
  Status establish(bool& ready);

  uint32_t queuePairs() const { return uint32_t(pairs_.size()); }
  QueuePairHandle& queuePair(uint32_t index) { return *pairs_[index]; }
  bool splits() const { return splits_; }
  const Introduction& peer() const { return peer_; }
  uint32_t maxWrite() const { return maxWrite_; }
  // Own memory for both directions: the first part is written by the other side.
  std::byte* area() const { return static_cast<std::byte*>(area_.address()); }
  uint32_t areaKey() const { return areaRegion_->region->localKey; }

  Status registerMemory(const Region& region, Registration& out);
  Status deregisterMemory(Registration registration);
  static const RegisteredRegion& regionOf(Registration registration) {
    return *static_cast<const RegisteredRegion*>(registration.opaque);
  }

  // Completions that have come; 0: none. One of a failure is remembered and not among them.
  size_t poll(std::span<verbs::Completion> out);
  // Whether the connection can go on, as far as completions, events and the other side's socket say; for a caller whose
  // poll has found nothing. pollAgain: something may have come meanwhile.
  Status health(bool& pollAgain);
  // Ends it, and tells the other side: the card touches no memory of requests afterwards. Returns why.
  Status fail(ncclResult_t code, const std::string& why);
  Status failure() const { return failure_; }
  // The other side has closed the socket, as far as this one has looked.
  bool isPeerGone() const { return control_.isGone(); }

 private:
  enum class Stage { start, introduces, awaitsReady, ready };

  Status start();
  Status createQueuePairs(uint32_t count);
  Status tell(ControlKind kind, std::span<const std::byte> body = {});
  // The message of that kind, once it has come.
  Status hear(ControlKind kind, std::optional<ControlSocket::Message>& out);
  Status introduce();
  Status checkPeer(std::span<const std::byte> body);
  Status connectQueuePairs();
  std::string where() const;

  VerbsNetwork& network_;
  const uint32_t device_;
  const bool sends_;
  const std::string peerAddress_;
  const std::shared_ptr<Card> card_;
  ControlSocket control_;
  Mapping area_;
  RegisteredRegion* areaRegion_ = nullptr;
  verbs::CompletionQueue* completions_ = nullptr;
  std::vector<std::unique_ptr<QueuePairHandle>> pairs_;
  std::vector<RegisteredRegion*> registered_;  // by the owner
  PortAddress own_ = {};
  int gidIndex_ = 0;
  uint32_t maxWrite_ = 0;
  bool splits_ = false;
  Introduction mine_ = {}, peer_ = {};
  Stage stage_ = Stage::start;
  Status failure_;
  std::string broken_;  // why completions say that it cannot go on
  bool brokenByFlush_ = false;
  bool wasGone_ = false;  // at the last look
  uint32_t emptyPolls_ = 0;
  uint64_t seenEvents_ = 0;  // of the network, at the last look at the socket
};

}  // namespace ncclrun::net
