// The aggregator's side of one connection: a member of a group, from its first frame on.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "aggregator/frame_reader.h"
#include "aggregator/frame_writer.h"
#include "base/clock.h"
#include "base/descriptor.h"

namespace ncclrun::aggregator {

class Group;

struct Member {
  Member(Descriptor connection, std::string peerAddress)
      : socket(std::move(connection)), peer(std::move(peerAddress)) {}

  const Descriptor socket;
  const std::string peer;  // "10.0.0.2 port 40000"
  FrameReader reader;
  FrameWriter writer;
  Join join;
  std::shared_ptr<Group> group;  // null: it has not joined yet
  const uint64_t since = nowNanoseconds();
  uint64_t heardAt = since;     // nanoseconds
  uint64_t begun = 0;           // chunks whose header has come
  uint64_t complete = 0;        // of these, with all of the payload
  uint64_t discardedSince = 0;  // nanoseconds; not 0: the group has failed, and what this member sends is discarded
  uint32_t interest = 0;        // events that epoll reports
  bool hasPayload = false;      // the frame under way
  bool isPaused = false;        // its chunk waits for memory
  bool hasLeft = false;         // in order
  bool isBroken = false;        // sends what this protocol does not have: is read no more

  uint64_t resultsWritten() const { return writer.chunksWritten(); }
};

}  // namespace ncclrun::aggregator
