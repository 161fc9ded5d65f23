// DataPath of GPUs, which launches each operation as kernels and copies on the user's own streams, without a helper
// thread.
#pragma once
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda/cuda_launcher.h"
#include "cuda/cuda_resources.h"
#include "cuda/cuda_runner.h"
#include "cuda/gpu_recorder.h"
#include "datapath/awaited_peers.h"
#include "datapath/call_check.h"
#include "datapath/data_path.h"
#include "datapath/interrupt.h"
#include "datapath/recorder.h"
#include "datapath/remote_calls.h"
#include "datapath/telemetry.h"
#include "net/proxy/rail_group.h"

namespace ncclrun::cuda {

class CudaDataPath final : public DataPath {
 public:
  CudaDataPath(const Setup& setup, const Gpu& gpu);
  ~CudaDataPath() override;
  Status start();

  Status connect() override;
  std::unique_ptr<Announcement> announce(std::span<const Operation> operations, ncclrunStream_t stream) override;
  void consent(Announcement& announcement) override;
  Status enqueue(std::span<const Operation> operations, ncclrunStream_t stream,
                 std::unique_ptr<Announcement> announcement) override;
  Status order(ncclrunStream_t later, ncclrunStream_t earlier) override;
  bool full() const override { return false; }
  Status awaitRoom() override { return asyncError(); }
  Status nodeBarrier() override;
  void leave(uint64_t collectives) override;
  void leaveAborted() override;
  void peerGone(uint32_t rank, const Status& why, bool waited) override;
  void abort(const Status& status, FailureScope scope) override;
  Status asyncError() const override { return resources_->interrupt->status(); }
  bool idle() const override;
  Status compareCalls() override;
  Status predict(const Operation& operation, double& microseconds) const override;
  Status variant(plan::Collective collective, uint64_t bytes, ncclrunVariant& out) const override;
  void info(ncclrunCommInfo& out) const override;
  const char* hostName(uint32_t index) const override;
  size_t edges(std::span<ncclrunEdge> out) const override;
  void forgetBuffer(const RegisteredBuffer& buffer) override;
  uint64_t gpuBytes() const override;
  uint64_t networkReductions() const override;
  void useNetworkReductions(uint64_t agreed) override;

 private:
  class PendingAnnouncement;
  enum class Probe { none, running, published, agreed };

  void startLoading();
  Status startNetwork(Descriptor listening);
  Status allocateNetRegions();
  // Begins to make the connections with other hosts that the rings need, or the operations.
  Status connectRings();
  Status connectFor(std::span<const Task> tasks);
  Status connectWith(uint32_t peer);
  Status connectWithNeighbours();
  // On the proxy's thread, which must not wait for the mutex either.
  void peerLost(uint32_t peer, const Status& why);
  // The operation that carries this one out. The barrier's own kernel reaches the GPUs of one host.
  Operation carriedOutBy(const Operation& operation) const;
  // Regions with a rank of any host.
  RegionPair pairRegions(uint32_t peer) const;
  RegionPair ringRegions(uint32_t peer) const;
  RegionPair regionsWith(uint32_t peer, auto&& inAndOut) const;
  Status makeTables();
  Status fillTable(size_t at, const void* from, size_t bytes);
  Status makeRingPositions();
  Status makeLauncher();
  Status reportWaits();
  void startRecording();
  void readGpuClock(int tries);
  Status beginProbe();
  Status endProbe();
  void lookAtReceivers(std::span<const Operation> operations);
  void addAwaited(std::span<const Operation> operations, Stream stream, const Capture& capture);
  Status addCalls(std::span<const Operation> operations);
  Status choose(std::span<const Operation> operations, bool captured, std::vector<Task>& tasks) const;
  Status run(std::vector<Task>& tasks, DirectCopies::Announced copies, Stream stream, const Capture& capture);
  void record(std::span<Task> tasks, const DirectCopies::Agreed& agreed, bool captured, uint64_t now);
  bool allPeersPresent() const;
  Status checkPresent(std::span<const Operation> operations);
  Status checkPresent(const Operation& operation, uint32_t peer) const;
  bool waitsFor(uint32_t peer, const Status& why, FailureScope& scope);
  uint64_t leftAt(uint32_t peer) const;  // as Doorbell::left
  uint32_t provenRequirements(bool captured) const;
  uint32_t provenRequirements(bool captured, const Operation& operation) const;
  uint32_t negotiableRequirements() const;  // requirements that the ranks may still agree on
  bool areBuffersUnused() const;
  void watchCopies(bool copies);
  void logCopies(const Task& first) const;
  void tidyBuffers();
  Status compareRemotely();
  void failAll(const Status& why);
  uint64_t deadline(std::span<const Task> tasks, bool captured) const;
  Interrupt& interrupt() const { return *resources_->interrupt; }
  const PlanView& plan() const { return resources_->plan; }
  Doorbell& ownBell() const { return resources_->segment.doorbell(plan().peer(setup_.rank).localIndex); }

  const Setup setup_;
  std::shared_ptr<Resources> resources_;
  Telemetry telemetry_;
  std::optional<Recorder> recorder_;    // once the plan has said how many ranks there are
  GpuRecorder* gpuRecorder_ = nullptr;  // null: kernels record nothing
  CallCheck calls_;                     // guarded by mutex_
  RemoteCalls remoteCalls_;
  const double copyTimeout_;
  std::future<Status> loading_;  // result of loading the kernels
  std::unique_ptr<Launcher> launcher_;
  std::unique_ptr<Runner> runner_;
  std::vector<std::string> hostNames_;

  mutable std::mutex mutex_;
  RetainedCaptures captures_;
  std::set<uint32_t> connectedPairs_;  // peers of other hosts
  std::vector<Task> unannounced_;      // tasks of the current call; a member to reuse its memory
  std::mutex awaitedMutex_;            // of the next two; nobody who holds it calls the driver
  AwaitedPeers awaited_;
  uint32_t markedBlocks_ = 0;  // over a network: launched before the last mark
  Launch constants_{};
  Probe probe_ = Probe::none;
  std::atomic<NetworkReductions> reductions_{0};  // of the network, which all ranks have agreed on
  bool testsLines_ = false;                       // else the probe only reads the GPU's clock
  bool hasLL128_ = false;
  bool watchesCopies_ = false;
  bool loggedCopies_ = false;
};

}  // namespace ncclrun::cuda
