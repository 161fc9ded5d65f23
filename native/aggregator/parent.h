// A node's connection to its parent in a tree of aggregators: joins it, sends what the node has reduced and receives
// what all nodes have reduced together. Blocks nowhere.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/chunk_memory.h"
#include "aggregator/join.h"
#include "aggregator/link.h"
#include "base/error.h"
#include "net/socket/address.h"

namespace ncclrun::aggregator {

// Sets `out` once the other side has admitted this one; to be called again until then.
using Connecting = std::function<Status(Descriptor& out)>;
using Dial = std::function<Connecting(const net::ListenerAddress& where)>;

class Parent : public Link {
 public:
  // child: with which the node was joined. discarded: memory for a chunk that nobody reads.
  Parent(const JoinRequest& child, const Dial& dial, std::byte* discarded);

  enum class Step { nothing, joined, result, failed };
  // Moves what can be moved, as far as the next thing that the node must know.
  Step step(uint64_t now);
  // After Step::result.
  struct Result {
    FrameHeader header;
    std::shared_ptr<const Chunk> chunk;
  };
  Result takeResult();
  // After Step::failed. The connection is closed.
  const Status& failure() const { return failure_; }

  void reportJoined();
  void contribute(const FrameHeader& header, Chunk chunk, uint64_t now);
  // The member `rank` leaves, and nothing more can be contributed; at the first call.
  void leave(uint32_t rank);
  // The group has ended; what is received from now on is discarded.
  void reportFailure(const Status& failure, uint64_t now);
  void beat();
  // Fails if it says nothing for the timeout while something is awaited.
  Status checkSilence(uint64_t now, uint64_t timeout) const;
  void forgetSilence(uint64_t now) { heardAt_ = now; }

  bool isConnecting() const { return connecting_ != nullptr; }
  // The connection may be closed: all that was to be said has been.
  bool isOver(uint64_t now) const;

 private:
  struct Pending {
    FrameHeader header;  // of the contribution
    std::shared_ptr<Chunk> chunk;
    uint64_t number = 0;  // of the chunks contributed here
  };
  Status connect();
  Step handleHeader();
  Step lost(ncclResult_t code, const std::string& why);

  std::string name_;  // "the aggregator at 10.0.0.9 port 4000, which reduces for ranks 0 to 6"
  const std::vector<std::byte> join_;
  std::byte* const discarded_;
  Connecting connecting_;
  bool isJoined_ = false, hasLeft_ = false;
  std::deque<Pending> pending_;  // without a result: kWindow at most
  uint64_t contributed_ = 0;
  uint64_t heardAt_ = 0, failedAt_ = 0;  // nanoseconds; failedAt_ 0: the group has not failed
  std::shared_ptr<const std::string> sentence_;
  std::vector<char> received_;  // a sentence
  Status failure_;
};

}  // namespace ncclrun::aggregator
