// What both sides of a connection over verbs have: the path over one port, an area that the other side writes to, and
// the authenticated socket by which they were introduced. Where a path fails and the hosts have another port, both
// sides move to that, and nothing is lost or comes twice. Its owner calls it on one thread at a time.
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
#include "net/verbs/verbs_path.h"

namespace ncclrun::net {

inline constexpr size_t kCompletionsAtOnce = 16;  // that a poll takes
// In ids of work requests: a receive.
inline constexpr uint64_t kReceiveId = uint64_t(1) << 63;
// A read that flushes.
inline constexpr uint64_t kFlushId = uint64_t(1) << 62;

class VerbsLink {
 public:
  struct Setup {
    VerbsNetwork& network;
    uint32_t device;
    bool sends;
    Descriptor control;
    std::string peer;  // "10.0.0.2 port 4000"
  };
  // Memory that the owner has registered, wherever the connection is.
  struct Registered {
    Region region;
    Descriptor dmaBuf;  // of the region; a copy of the caller's
    RegisteredRegion* here;
    std::shared_ptr<Card> card;

    uint32_t localKey() const { return here->region->localKey; }
    uint32_t remoteKey() const { return here->region->remoteKey; }
  };
  explicit VerbsLink(Setup setup);
  ~VerbsLink();
  VerbsLink(const VerbsLink&) = delete;
  VerbsLink& operator=(const VerbsLink&) = delete;

  // Introduces the sides to each other. ready: the first message may come.
  Status establish(bool& ready);

  uint32_t queuePairs() const { return uint32_t(path_->queuePairs().size()); }
  QueuePairHandle& queuePair(uint32_t index) { return *path_->queuePairs()[index]; }
  bool splits() const { return splits_; }
  const Introduction& peer() const { return peer_; }
  uint32_t maxWrite() const { return path_->maxWrite(); }
  // Own memory for both directions: the first part is written by the other side.
  std::byte* area() const { return static_cast<std::byte*>(area_.address()); }
  uint32_t areaKey() const { return path_->areaKey(); }

  Status registerMemory(const Region& region, Registration& out);
  Status deregisterMemory(Registration registration);
  static const Registered& registeredOf(Registration registration) {
    return *static_cast<const Registered*>(registration.opaque);
  }

  VerbsPath& path() { return *path_; }
  // Grows with every new path.
  uint32_t pathNumber() const { return pathNumber_; }
  // There is a path that has not failed, whether or not the other side knows it.
  bool hasPath() const { return !isMoving_ || isMoveSent_; }
  // A receive for an immediate on the queue pair.
  Status postReceive(uint32_t pair, uint64_t id);
  // Completions that have come; 0: none. One of a failure is remembered and not among them.
  size_t poll(std::span<verbs::Completion> out);
  // Whether the connection can go on, as far as completions, events and the other side's socket say; for a caller whose
  // poll has found nothing. pollAgain: something may have come meanwhile.
  Status health(bool& pollAgain);

  // The path has failed: nothing is posted before advanceMove() has resumed.
  bool isMoving() const { return isMoving_; }
  // Goes on with the move. `progress`: the receiver's, once nothing more can arrive; the sender's says nothing.
  // resumed: there are new queue pairs, and `progress` is the other side's.
  Status advanceMove(Progress& progress, bool& resumed);
  // What had been posted has completed, well or not: nothing more arrives by the path that has failed.
  bool isDrained();

  // Ends it, and tells the other side: the card touches no memory of requests afterwards. Returns why.
  Status fail(ncclResult_t code, const std::string& why);
  Status failure() const { return failure_; }
  // The other side has closed the socket, as far as this one has looked.
  bool isPeerGone() const { return control_.isGone(); }

 private:
  enum class Stage { start, introduces, awaitsReady, ready };

  Status failWith(const Status& status) { return fail(status.code, status.sentence); }
  Status openPath(uint32_t device);
  Status createQueuePairs(uint32_t count);
  Status sendControl(ControlKind kind, std::span<const std::byte> body);
  Status sendReady();
  // The message of that kind, once it has come.
  Status expectControl(ControlKind kind, std::optional<ControlSocket::Message>& out);
  Status refuse(const ControlSocket::Message& message);
  Status introduce();
  Status adoptPeer(const Introduction& peer);
  // The path has failed, for this reason: begins a move where there is another port.
  Status pathFailed(const std::string& why);
  bool isUsable(uint32_t device) const;
  std::optional<uint32_t> otherDevice() const;
  Status handleMove(const ControlSocket::Message& message);
  Status makeNewPath();
  Status reregister();
  std::string where() const;

  VerbsNetwork& network_;
  const uint32_t firstDevice_;
  const bool sends_;
  const std::string peerAddress_;
  ControlSocket control_;
  Mapping area_;
  std::unique_ptr<VerbsPath> path_;
  uint32_t pathNumber_ = 0;
  std::vector<std::unique_ptr<Registered>> registered_;
  bool splits_ = false;
  Introduction peer_ = {};
  Stage stage_ = Stage::start;
  Status failure_;
  std::string broken_;          // why completions say that the path has failed
  bool brokenByFlush_ = false;  // by what follows from another failure
  bool isDefect_ = false;       // of memory or requests: another path would not help
  bool wasGone_ = false;        // at the last look
  uint32_t openReceives_ = 0;   // that are posted
  uint32_t emptyPolls_ = 0;
  uint64_t seenEvents_ = 0;  // of the network, at the last look at the socket

  // The move under way, or the last one.
  bool isMoving_ = false;
  uint32_t move_ = 0;  // number
  uint64_t movingSince_ = 0;
  std::string cause_;  // of the move
  bool isMoveSent_ = false, isConnected_ = false, isPeerReady_ = false;
  std::optional<Move> peerMove_;
};

}  // namespace ncclrun::net
