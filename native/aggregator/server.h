// Serves the members of any number of groups in one thread. Whoever has accepted and authenticated their sockets hands
// them over.
#pragma once
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/group.h"

namespace ncclrun::aggregator {

struct ServerLimits {
  // Of chunks. Beyond it, a member's next chunk waits in its socket, but for the one that its group waits for.
  size_t memoryBytes = size_t(256) << 20;
  uint64_t joinTimeout = 20'000'000'000;     // nanoseconds until all members of a group have joined
  uint64_t silenceTimeout = 20'000'000'000;  // nanoseconds until a silent member is lost
};

class Server {
 public:
  static Status make(const ServerLimits& limits, std::unique_ptr<Server>& out);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Takes a connection. peer: "10.0.0.2 port 40000".
  void adopt(Descriptor socket, std::string peer);
  // poll() returns when the descriptor is readable, too.
  Status watch(int descriptor);
  // Waits for events, at most this long and never longer than until the next tick, and serves them.
  Status poll(int milliseconds);

  // What it holds; any thread.
  struct Figures {
    size_t members = 0, groups = 0, chunkBytes = 0, mostChunkBytes = 0;
  };
  Figures figures() const;

 private:
  explicit Server(const ServerLimits& limits) : limits_(limits), memory_(limits.memoryBytes) {}
  void read(Member& member);
  void handleHeader(Member& member);
  void handlePayload(Member& member);
  void join(Member& member);
  void end(Member& member, const std::string& why);
  // Looks at the sockets that the group has written to.
  void settle(Group& group);
  void setInterest(Member& member);
  void resumePaused();
  void tick(uint64_t now);

  const ServerLimits limits_;
  Descriptor epoll_;
  ChunkMemory memory_;
  std::unique_ptr<std::byte[]> discarded_;
  std::map<GroupId, std::shared_ptr<Group>> groups_;
  std::map<int, std::unique_ptr<Member>> members_;  // by descriptor
  bool hasPaused_ = false;                          // some member may be
  uint64_t nextTick_ = 0, nextHeartbeat_ = 0;
  std::atomic<size_t> memberCount_{0}, groupCount_{0}, usedBytes_{0}, mostBytes_{0};
};

}  // namespace ncclrun::aggregator
