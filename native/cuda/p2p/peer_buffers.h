// Mappings of other ranks' user buffers for the copy engines. A rank maps an allocation of another process at its first
// use and keeps the mapping: the memory is freed only when all ranks have closed it. So a rank notifies the others when
// it has freed or deregistered buffers, and they close their mappings; of too many or too large ones they close those
// used least recently. All of this waits until no running operation uses them, and does not happen where a graph may
// use them again.
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

  // `idle()`: true if no running or captured operation of this GPU uses the mappings; called only before closing one.
  using Idle = std::function<bool()>;

  // Describes a buffer for the other ranks. Returns false if they cannot store into this type of memory.
  bool describe(const void* address, BufferLocation& out);
  // Finds the address of a local rank's buffer on this GPU. Returns false if it cannot be reached.
  bool reach(uint32_t local, const BufferLocation& location, const Idle& idle, Pointer& out);

  // The program has deregistered a buffer.
  void release(const void* address);
  // Called periodically while no mapping is in use: notifies the others of buffers freed here and closes mappings of
  // those that they have freed.
  void tidy(const Idle& idle);
  bool needsTidying() const { return !own_.empty() || !opened_.empty(); }

 private:
  static constexpr size_t kMax = 256;
  static constexpr uint64_t kPartOfMemory = 16;  // an idle rank maps at most 1/16 of a GPU's memory from one peer
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
    uint32_t seen = 0;   // last value of its Doorbell::releases
    uint64_t bytes = 0;  // mapped
  };
  using Key = std::pair<uint32_t, uint64_t>;  // local rank, allocation
  using Position = std::map<Key, Opened>::iterator;
  Position close(Position position);
  void closeOldest(const std::function<bool(uint32_t local)>& of);
  bool isSurplus(uint32_t local, const Peer& peer) const;
  void closeSurplus(const Idle& idle);
  void publishReleases() { segment_.doorbell(ownLocal_).releases.fetch_add(1, std::memory_order_release); }

  const Gpu gpu_;
  const Segment& segment_;
  const uint32_t ownLocal_;
  uint64_t maxBytes_ = 0;        // per peer
  std::map<uint64_t, Own> own_;  // by allocation
  std::map<Key, Opened> opened_;
  std::map<uint32_t, Peer> peers_;  // by local rank
  uint64_t uses_ = 0;
};

}  // namespace ncclrun::cuda
