// The aggregator's side of one connection: a member of a group, or another aggregator for those below it, from its
// first frame on.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/join.h"
#include "aggregator/link.h"
#include "base/clock.h"

namespace ncclrun::aggregator {

class Group;

struct Member : Link {
  Member(Descriptor connection, std::string peerAddress) : peer(std::move(peerAddress)) {
    socket = std::move(connection);
  }

  const std::string peer;        // "10.0.0.2 port 40000"
  std::vector<std::byte> words;  // the payload of a frame that brings no chunk
  JoinRequest request;
  std::shared_ptr<Group> group;  // null: it has not joined yet
  const uint64_t since = nowNanoseconds();
  uint64_t heardAt = since;     // nanoseconds
  uint64_t begun = 0;           // chunks whose header has come
  uint64_t complete = 0;        // of these, with all of the payload
  uint64_t discardedSince = 0;  // nanoseconds; not 0: the group has failed, and what this member sends is discarded
  bool hasPayload = false;      // the frame under way
  bool isPaused = false;        // its chunk waits for memory
  bool isReady = false;         // all members below it have joined
  bool hasLeft = false;         // in order
  bool isBroken = false;        // sends what this protocol does not have: is read no more

  uint32_t child() const { return request.join.child; }
  bool isAggregator() const { return request.join.level > 0; }
  uint64_t resultsWritten() const { return writer.chunksWritten(); }
};

}  // namespace ncclrun::aggregator
