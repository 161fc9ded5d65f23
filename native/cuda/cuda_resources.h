// What kernels of a communicator use, and may still use after it was destroyed; when and where that is freed.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/recorder_claim.h"
#include "cuda/direct_copies.h"
#include "cuda/launch_order.h"
#include "cuda/net/net_regions.h"
#include "cuda/p2p/regions.h"
#include "cuda/sm_share.h"
#include "datapath/gone_peers.h"
#include "datapath/interrupt.h"
#include "datapath/remote_calls.h"
#include "dl/gpu_memory.h"
#include "net/proxy/net_transport.h"
#include "plan/segment.h"

namespace ncclrun::cuda {

// How many blocks have been launched on the network, and how many of these have ended: what the proxy, which must not
// call the driver (another thread may hold its lock and wait for a kernel that waits for the proxy), knows of them.
struct NetworkActivity {
  std::atomic<uint32_t> launched{0};
  std::atomic<bool> isCaptured{false};  // launches run whenever their graph does, of which nobody hears
  uint32_t* ended = nullptr;            // in pinned memory

  bool isBusy() const {
    if (isCaptured.load(std::memory_order_acquire)) return true;
    const uint32_t blocks = launched.load(std::memory_order_acquire);
    return std::atomic_ref(*ended).load(std::memory_order_acquire) != blocks;
  }
  // All that had been launched when `launched` was so.
  bool hasEnded(uint32_t blocks) const {
    return int32_t(std::atomic_ref(*ended).load(std::memory_order_acquire) - blocks) >= 0;
  }
};

struct PinnedState {
  uint32_t aborted;    // abort flag: a value other than 0 ends every wait of this rank's kernels
  uint32_t tornWords;  // words of torn 128-byte lines that the probe counted
  uint64_t clock;      // the GPU's clock at the end of the probe
  uint32_t ended;      // over a network: blocks that have ended
};

// Resources that running or captured kernels may still use: they outlive the DataPath until the kernels have ended and
// the graphs are destroyed.
struct Resources {
  Resources(const Gpu& onGpu, std::shared_ptr<ncclrunTelemetrySlot> slot) : gpu(onGpu), telemetry(std::move(slot)) {}
  ~Resources();
  void awaitIdle() const;

  const Gpu gpu;
  const std::shared_ptr<ncclrunTelemetrySlot> telemetry;  // kernels write to it
  std::shared_ptr<const RecorderClaim> recorder;          // the same of the flight recorder; may be null
  std::vector<std::byte> planBytes;  // a copy: the communicator's own may go before these resources
  PlanView plan;
  Segment segment;
  Stream stream = nullptr;  // the engine's own stream
  Event probed = nullptr;   // recorded after the probe's kernel
  std::unique_ptr<LaunchOrder> order;
  std::unique_ptr<SmShare> share;  // uses the order
  std::unique_ptr<Regions> regions;
  // With ranks of other hosts; null where there are none.
  std::unique_ptr<NetRegions> netRegions;
  const OwnCall call{.rank = {}, .call = {}};  // a kernel does not say which call it runs
  GonePeers gonePeers;
  NetworkActivity activity;
  std::unique_ptr<NetTransport> net;  // uses netRegions
  Memory tables;
  Memory barrierWord;       // over a network: what a barrier reduces
  PinnedPages sharedPages;  // of the segment: abort flag and copy flags
  std::unique_ptr<Interrupt> interrupt;
  PinnedState* pinned = nullptr;         // in pinned memory of the host
  std::unique_ptr<DirectCopies> copies;  // null if not all GPUs support them
};

// Resources that a thread of their own frees once nobody holds them any more.
std::shared_ptr<Resources> makeResources(const Gpu& gpu, std::shared_ptr<ncclrunTelemetrySlot> telemetry);

// Held while memory is freed, and for good once the process exits, because the driver is about to exit too.
std::timed_mutex& freeingMutex();

// The captures whose graphs hold the resources: a graph may be launched after its communicator was destroyed.
class RetainedCaptures {
 public:
  // Makes the graph of the capture that is active on `stream` hold the resources. `capture`: its id; 0: there is none.
  Status retain(const std::shared_ptr<Resources>& resources, Stream stream, uint64_t capture);

 private:
  std::set<uint64_t> latest_;
};

}  // namespace ncclrun::cuda
