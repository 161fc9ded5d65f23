// Users' buffers as the copy engines of other ranks reach them. An allocation of another process is mapped at its first
// use and stays so: its memory is free again only when all have closed it. So a rank tells the others when it has freed
// or deregistered buffers, and they close what they have of its; of many or large ones those used least recently. All
// of this waits until nothing is under way that uses them, and does not happen where a graph may use them again.
#pragma once
#include <functional>
#include <map>
#include <utility>

#include "dl/gpu.h"
#include "plan/segment.h"

namespace ncclrun::cuda {

class PeerBuffers {
 public:
  PeerBuffers(const Gpu& gpu, const Segment& segment, uint32_t ownLocal);
  ~PeerBuffers();
  PeerBuffers(const PeerBuffers&) = delete;
  PeerBuffers& operator=(const PeerBuffers&) = delete;

  // `idle()`: nothing that this GPU does, or may repeat, uses what was reached before; asked only where something has
  // to be closed.
  using Idle = std::function<bool()>;

  // What the others have to know. False: they cannot store into memory of its kind.
  bool describe(const void* address, BufferPlace& out);
  // Where the buffer of a local rank lies for us. False: it cannot be reached.
  bool reach(uint32_t local, const BufferPlace& place, const Idle& idle, Pointer& out);

  // The program says that it no longer uses a buffer so.
  void takeBack(const void* address);
  // To be called now and then, while nobody holds on to what was reached: tells the others of what was freed here,
  // closes what they have freed.
  void tidy(const Idle& idle);
  bool needsTidying() const { return !own_.empty() || !opened_.empty(); }

 private:
  static constexpr size_t kMost = 256;
  static constexpr uint64_t kPartOfMemory =
      16;  // of a GPU's memory one rank maps so much of another's at most, when idle
  struct Own {
    Pointer base;
    IpcHandle handle;
  };
  struct Opened {
    Pointer base;
    uint64_t bytes;
    uint64_t used;
  };
  struct Peer {
    uint32_t seen = 0;   // of its Doorbell::takenBack
    uint64_t bytes = 0;  // mapped
  };
  using Key = std::pair<uint32_t, uint64_t>;  // local rank, allocation
  using Position = std::map<Key, Opened>::iterator;
  Position close(Position position);
  void closeOldest(const std::function<bool(uint32_t local)>& of);
  bool isSurplus(uint32_t local, const Peer& peer) const;
  void closeSurplus(const Idle& idle);
  void tellOwn() { segment_.doorbell(ownLocal_).takenBack.fetch_add(1, std::memory_order_release); }

  const Gpu gpu_;
  const Segment& segment_;
  const uint32_t ownLocal_;
  uint64_t mostBytes_ = 0;       // of a peer
  std::map<uint64_t, Own> own_;  // by allocation
  std::map<Key, Opened> opened_;
  std::map<uint32_t, Peer> peers_;  // by local rank
  uint64_t uses_ = 0;
};

}  // namespace ncclrun::cuda
