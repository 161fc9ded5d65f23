// A group at the aggregator, or the node of its tree that this one serves: matches the members' chunks, reduces them in
// rank order, and passes the results to all. Where the node has a parent, what it has reduced goes there first.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/chunk_memory.h"
#include "aggregator/member.h"
#include "aggregator/parent.h"
#include "base/error.h"

namespace ncclrun::aggregator {

class Group {
 public:
  // discarded: memory for a chunk that nobody reads.
  Group(const JoinRequest& first, const Dial& dial, ChunkMemory& memory, std::byte* discarded, uint64_t now);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Takes a member whose join is complete. The group fails where it contradicts the members before.
  void join(Member& member);
  // An aggregator says that all members below it have joined.
  void ready(Member& member);
  // The header of a contribution has come. False: there is no memory for it now; to be called again with the same one.
  bool begin(Member& member);
  // Its payload has come.
  void complete(Member& member);
  // The member says that it leaves.
  void leave(Member& member);
  // The connection of the member has ended.
  void remove(Member& member, const std::string& why);
  // Moves what the parent sends.
  void advanceParent(uint64_t now);
  // Members wait for each other for the timeout at most.
  void checkComplete(uint64_t now, uint64_t timeout);
  // A member that others wait for says nothing for the timeout at most, nor does the parent.
  void checkSilence(uint64_t now, uint64_t timeout);
  // Sends everybody a frame that says that the aggregator is there.
  void sendHeartbeats();

  // All members learn it, behind results that are complete.
  void fail(ncclResult_t code, const std::string& sentence);
  bool hasFailed() const { return !failure_.ok(); }
  bool isEmpty() const { return present_ == 0; }
  // Nobody can join any more.
  bool isOver(uint64_t now, uint64_t timeout) const;
  // Members whose sockets must be looked at again because something was queued for them.
  std::vector<Member*> takeChanged() { return std::exchange(changed_, {}); }
  Parent* parent() const { return parent_.get(); }

 private:
  // The chunk that is number k modulo kWindow of the group.
  struct Slot {
    FrameHeader header;        // of whoever came first
    uint32_t first = 0;        // its number among the children
    uint32_t begun = 0;        // members whose header has come
    uint32_t complete = 0;     // members whose payload has come
    std::vector<Chunk> parts;  // by child
  };

  std::string describe(uint32_t child) const;
  std::string describe(const Member& member) const { return describe(member.child()); }
  std::string describeLeft() const;
  std::string missingRanks() const;
  bool isSound(const Member& member, const FrameHeader& header) const;
  void queue(Member& member, const FrameHeader& header, const std::byte* payload = nullptr,
             std::shared_ptr<const void> owner = nullptr);
  void failMember(Member& member);
  void reduce(Slot& slot);
  void deliver(const FrameHeader& header, const std::shared_ptr<const Chunk>& result);
  void open();
  void tellParentWhoLeft();

  const JoinRequest first_;  // of the member that came first
  const uint32_t size_;      // children of the node
  const uint64_t since_;     // nanoseconds
  ChunkMemory& memory_;
  std::byte* const discarded_;
  const std::unique_ptr<Parent> parent_;  // null at the root
  std::vector<Member*> members_;          // by child; null: not there
  std::vector<std::string> peers_;
  uint32_t present_ = 0, joined_ = 0, ready_ = 0;
  bool isOpen_ = false;  // all members of the whole group have joined
  std::array<Slot, kWindow> slots_;
  uint64_t reduced_ = 0;              // chunks
  uint64_t contributedUpTo_ = ~0ull;  // chunks that a member contributed before it left
  uint32_t leftRank_ = 0;             // that member
  std::string leftPeer_;              // where its frame came from
  Status failure_;
  std::shared_ptr<const std::string> sentence_;  // of failure_, as it is sent
  std::vector<Member*> changed_;
};

}  // namespace ncclrun::aggregator
