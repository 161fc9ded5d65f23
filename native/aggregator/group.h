// A group at the aggregator: matches the members' chunks, reduces them in rank order, and passes the results to all.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/chunk_memory.h"
#include "aggregator/member.h"
#include "base/error.h"

namespace ncclrun::aggregator {

class Group {
 public:
  // discarded: memory for a chunk that nobody reads.
  Group(const Join& first, ChunkMemory& memory, std::byte* discarded, uint64_t now);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Takes a member whose join is complete. The group fails where it contradicts the members before.
  void join(Member& member);
  // The header of a contribution has come. False: there is no memory for it now; to be called again with the same one.
  bool begin(Member& member);
  // Its payload has come.
  void complete(Member& member);
  // The member says that it leaves.
  void leave(Member& member);
  // The connection of the member has ended.
  void remove(Member& member, const std::string& why);
  // Members wait for each other for the timeout at most.
  void checkComplete(uint64_t now, uint64_t timeout);
  // A member that others wait for says nothing for the timeout at most.
  void checkSilence(uint64_t now, uint64_t timeout);
  // Sends every member a frame that says that the aggregator is there.
  void sendHeartbeats();

  // All members learn it, behind results that are complete.
  void fail(ncclResult_t code, const std::string& sentence);
  bool hasFailed() const { return !failure_.ok(); }
  bool isEmpty() const { return present_ == 0; }
  // Nobody can join any more.
  bool isOver(uint64_t now, uint64_t timeout) const;
  const GroupId& id() const { return id_; }
  // Members whose sockets must be looked at again because something was queued for them.
  std::vector<Member*> takeChanged() { return std::exchange(changed_, {}); }

 private:
  // The chunk that is number k modulo kWindow of the group.
  struct Slot {
    FrameHeader header;        // of whoever came first
    uint32_t first = 0;        // its rank
    uint32_t begun = 0;        // members whose header has come
    uint32_t complete = 0;     // members whose payload has come
    std::vector<Chunk> parts;  // by rank
  };

  std::string describe(uint32_t rank) const;
  std::string missingRanks() const;
  bool isSound(const Member& member, const FrameHeader& header) const;
  void queue(Member& member, const FrameHeader& header, const std::byte* payload = nullptr,
             std::shared_ptr<const void> owner = nullptr);
  void failMember(Member& member);
  void reduce(Slot& slot);

  const GroupId id_;
  const uint32_t size_;
  const uint64_t since_;  // nanoseconds
  ChunkMemory& memory_;
  std::byte* const discarded_;
  std::vector<Member*> members_;  // by rank; null: not there
  std::vector<std::string> peers_;
  uint32_t present_ = 0, joined_ = 0;
  std::array<Slot, kWindow> slots_;
  uint64_t completed_ = 0;            // chunks
  uint64_t contributedUpTo_ = ~0ull;  // chunks that a member contributed before it left
  uint32_t leftRank_ = 0;             // that member
  Status failure_;
  std::shared_ptr<const std::string> sentence_;  // of failure_, as it is sent
  std::vector<Member*> changed_;
};

}  // namespace ncclrun::aggregator
