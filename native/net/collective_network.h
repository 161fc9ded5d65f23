// The interface of a network that computes: members of a group contribute, and the network reduces or gathers on the
// way (NCCL's CollNet). A plugin's ncclCollNet table is behind it, and whatever else reduces outside of the ranks can
// be.
//
// No call blocks. A call that cannot go on returns success and leaves its result null; the caller repeats it with the
// same arguments. All members of a group must make the same calls on it in the same order: nothing else matches them.
//
// Threads: as those of a Network (net.h). A group is used by one thread at a time, and after connect() always by the
// same one; several groups by several threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "nccl.h"
#include "net/net.h"

namespace ncclrun::net {

// Collectives that a group has under way at most; beyond that a call answers "not now". The two proxies of a channel
// have as many slots between them.
inline constexpr size_t kMaxCollectives = 8;

struct Reduction {
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
};

struct RegisteredBuffer {
  void* address = nullptr;
  Registration registration = {};
};

// Which part of a gathered buffer one call moves. bytesPerRank of each member, in rank order, make the whole buffer;
// the window may begin and end within the part of any member.
struct Window {
  size_t bytesPerRank = 0;
  size_t offset = 0;
  size_t bytes = 0;
};

// One member's side of a group. Destroying it closes it, with whatever is under way.
class CollectiveGroup {
 public:
  virtual ~CollectiveGroup() = default;
  CollectiveGroup(const CollectiveGroup&) = delete;
  CollectiveGroup& operator=(const CollectiveGroup&) = delete;

  virtual Status registerMemory(const Region& region, Registration& out) = 0;
  virtual Status deregisterMemory(Registration registration) = 0;

  // Reduces `count` elements of all members into each member's `receive`, which is not `send`. `out` null: not now.
  virtual Status iallreduce(const RegisteredBuffer& send, const RegisteredBuffer& receive, size_t count,
                            Reduction reduction, Request*& out) = 0;
  // Gathers the window of the members' contributions into `receive`, which has room for the window. `send` is where the
  // own contribution to the window begins.
  virtual Status iallgather(const RegisteredBuffer& send, const RegisteredBuffer& receive, const Window& window,
                            Request*& out) = 0;
  // Reduces the window, which all members send, and gives each member the part of it that lies in its own bytesPerRank.
  virtual Status ireducescatter(const RegisteredBuffer& send, const RegisteredBuffer& receive, const Window& window,
                                Reduction reduction, Request*& out) = 0;
  // After a collective has completed into GPU memory, before the GPU reads it: makes the data visible there. `out`
  // null: it is already.
  virtual Status iflush(const RegisteredBuffer& buffer, size_t bytes, Request*& out) = 0;

  // Moves what can be moved. done: the request is complete, and no longer valid. Collectives complete in the order in
  // which they were begun. An error concerns the group: only destroying it is allowed afterwards.
  virtual Status test(Request* request, bool& done) = 0;

 protected:
  CollectiveGroup() = default;
};

// A member that waits for its group.
class CollectiveListener {
 public:
  virtual ~CollectiveListener() = default;
  // Connects the group whose members listen at `handles`, as member `rank` of them. `out` null: not all members have
  // come. Not to be called again once it has set `out` or failed; the same arguments each time.
  virtual Status connect(std::span<const Handle> handles, uint32_t rank, std::unique_ptr<CollectiveGroup>& out) = 0;
};

// A network that computes, as one communicator uses it. Outlives what it makes.
class CollectiveNetwork {
 public:
  virtual ~CollectiveNetwork() = default;
  CollectiveNetwork(const CollectiveNetwork&) = delete;
  CollectiveNetwork& operator=(const CollectiveNetwork&) = delete;

  virtual const std::string& name() const = 0;
  virtual std::span<const Device> devices() const = 0;
  virtual bool threadBound() const = 0;

  // What this member's network can reduce. All members must be asked: a group may be used only for what all can.
  virtual bool canReduce(Reduction reduction) const = 0;
  // Whether groups have iallgather() and ireducescatter().
  virtual bool canGather() const = 0;

  // Listens on a device (an index into devices()); all members need `handle`.
  virtual Status listen(uint32_t device, Handle& handle, std::unique_ptr<CollectiveListener>& out) = 0;

 protected:
  CollectiveNetwork() = default;
};

}  // namespace ncclrun::net
