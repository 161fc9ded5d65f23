// Users' buffers as the copy engines of other ranks reach them. An allocation of another process is mapped at its first
// use and stays so: its memory is free again only when all have closed it. Those used least recently are closed when
// there are many.
#pragma once
#include <functional>
#include <map>
#include <utility>

#include "core/segment.h"
#include "device/cuda/gpu.h"

namespace ncclrun::cuda {

class PeerBuffers {
 public:
  PeerBuffers(const Gpu& gpu, const Segment& segment) : gpu_(gpu), segment_(segment) {}
  ~PeerBuffers();
  PeerBuffers(const PeerBuffers&) = delete;
  PeerBuffers& operator=(const PeerBuffers&) = delete;

  // What the others have to know. False: they cannot store into memory of its kind.
  bool describe(const void* address, BufferPlace& out);
  // Where the buffer of a local rank lies for us. `idle()`: nothing that this GPU does, or may repeat, uses what
  // was reached before; asked only where something has to be closed. False: it cannot be reached.
  bool reach(uint32_t local, const BufferPlace& place, const std::function<bool()>& idle, Pointer& out);

 private:
  static constexpr size_t kMost = 256;
  struct Own {
    Pointer base;
    IpcHandle handle;
  };
  struct Opened {
    Pointer base;
    uint64_t used;
  };
  using Key = std::pair<uint32_t, uint64_t>;  // local rank, allocation
  void closeOldest();

  const Gpu gpu_;
  const Segment& segment_;
  std::map<uint64_t, Own> own_;  // by allocation
  std::map<Key, Opened> opened_;
  uint64_t uses_ = 0;
};

}  // namespace ncclrun::cuda
