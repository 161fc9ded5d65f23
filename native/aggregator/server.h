// Serves the members of any number of groups in one thread. Whoever has accepted and authenticated their sockets hands
// them over.
#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/group.h"
#include "aggregator/parent.h"

namespace ncclrun::aggregator {

struct ServerLimits {
  // Of chunks. Beyond it, a member's next chunk waits in its socket, but for the one that its group waits for.
  size_t memoryBytes = size_t(256) << 20;
  uint64_t joinTimeout = 20'000'000'000;     // nanoseconds until all members of a group have joined
  uint64_t silenceTimeout = 20'000'000'000;  // nanoseconds until a silent member is lost
};

class Server {
 public:
  // dial: to the parents in trees of aggregators; poll() goes on with what it connects, so whatever it waits for must
  // end a poll().
  static Status make(const ServerLimits& limits, Dial dial, std::unique_ptr<Server>& out);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Takes a connection. peer: "10.0.0.2 port 40000".
  void adopt(Descriptor socket, std::string peer);
  // poll() calls `isReadable` when the descriptor is.
  Status watch(int descriptor, std::function<void()> isReadable);
  // Waits for events, at most this long and never longer than until the next tick, and serves them.
  Status poll(int milliseconds);

  // What it holds; any thread.
  struct Figures {
    size_t members = 0, groups = 0, chunkBytes = 0, mostChunkBytes = 0;
  };
  Figures figures() const;

 private:
  // A node of a group's tree.
  struct NodeKey {
    GroupId group = {};
    uint32_t level = 0, node = 0;
    auto operator<=>(const NodeKey&) const = default;
  };
  Server(const ServerLimits& limits, Dial dial)
      : limits_(limits), dial_(std::move(dial)), memory_(limits.memoryBytes) {}
  Status watch(int descriptor);
  void read(Member& member);
  bool readFrames(Member& member);
  struct PayloadRange {
    uint32_t least = 0, most = 0;
  };
  static std::optional<PayloadRange> payloadOf(const Member& member, FrameKind kind);
  void handleHeader(Member& member);
  void handlePayload(Member& member);
  void join(Member& member);
  void end(Member& member, const std::string& why);
  // Looks at the sockets that the group has written to.
  void settle(Group& group);
  void setInterest(Member& member);
  void setInterest(Link& link, uint32_t events);
  void serveMember(Member& member, uint32_t events);
  void advanceParent(const std::shared_ptr<Group>& group);
  void connectParents();
  void resumePaused();
  void tick(uint64_t now);

  const ServerLimits limits_;
  const Dial dial_;
  Descriptor epoll_;
  ChunkMemory memory_;
  std::unique_ptr<std::byte[]> discarded_;
  std::map<NodeKey, std::shared_ptr<Group>> groups_;
  std::map<int, std::unique_ptr<Member>> members_;  // by descriptor
  std::map<int, std::shared_ptr<Group>> parents_;   // by the descriptor of the connection to the parent
  std::map<int, std::function<void()>> watched_;    // by descriptor
  std::vector<std::shared_ptr<Group>> connecting_;  // to their parents
  bool hasPaused_ = false;                          // some member may be
  uint64_t nextTick_ = 0, nextHeartbeat_ = 0;
  uint64_t servedAt_ = 0;  // nanoseconds: the last time that something had happened
  std::atomic<size_t> memberCount_{0}, groupCount_{0}, usedBytes_{0}, mostBytes_{0};
};

}  // namespace ncclrun::aggregator
