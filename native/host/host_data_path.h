// DataPath of the host device.
#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "datapath/call_check.h"
#include "datapath/data_path.h"
#include "datapath/gone_peers.h"
#include "datapath/interrupt.h"
#include "datapath/launch.h"
#include "datapath/recorder.h"
#include "datapath/telemetry.h"
#include "host/connections.h"
#include "host/operation_runner.h"
#include "plan/plan_view.h"
#include "plan/segment.h"

namespace ncclrun {

// State that queued launches hold on to: it outlives the DataPath until they have left the stream's queue.
class HostCommunicator final : public Launcher {
 public:
  static StatusOr<std::shared_ptr<HostCommunicator>> open(const DataPath::Setup& setup);
  explicit HostCommunicator(const DataPath::Setup& setup) : setup_(setup), telemetry_(setup.telemetry.get()) {}

  Status connect();
  Status enqueue(std::span<const Operation> operations, ncclrunStream_t stream,
                 const std::shared_ptr<HostCommunicator>& self);
  bool full() const { return pending_.load(std::memory_order_relaxed) >= kQueueDepth; }
  Status awaitRoom();
  Status nodeBarrier();
  void useNetworkReductions(NetworkReductions agreed);
  NetworkReductions networkReductions() const { return connections_->networkReductions(); }
  // Requirements of variants (bits of plan::kRequires…) that an operation fulfils.
  uint32_t satisfiedBy(const Operation& operation) const;
  void leave(uint64_t collectives);
  void leaveAborted();
  void peerGone(uint32_t rank, const Status& why);
  void abort(const Status& status, FailureScope scope);
  Status asyncError() const { return interrupt_->status(); }
  bool idle() const;
  Status compareCalls();
  const PlanView& plan() const { return plan_; }
  const Connections& connections() const { return *connections_; }
  uint32_t rank() const { return setup_.rank; }
  const char* hostName(uint32_t index) const;
  // Ends the communicator. After it returns, no launch touches the plan, the connections or users' buffers.
  void close();

  Status run(const Launch& launch, BorrowedThread* borrowed) override;
  uint64_t spinNanoseconds() const override { return plan_.header().spinNanoseconds; }

 private:
  // Maximum number of queued launches (single calls or groups).
  static constexpr uint32_t kQueueDepth = 4096;

  Status start();
  Status addCalls(const Launch& launch);
  void record(Launch& launch);
  void cancel(const Launch& launch) const;
  void wakeIfRoom();
  Doorbell& ownBell() const { return segment_.doorbell(plan_.peer(setup_.rank).localIndex); }

  const DataPath::Setup setup_;
  PlanView plan_;
  Segment segment_;
  Telemetry telemetry_;
  std::optional<Recorder> recorder_;  // once the plan has said how many ranks there are
  std::unique_ptr<Interrupt> interrupt_;
  GonePeers gonePeers_;
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<OperationRunner> runner_;
  std::unique_ptr<CallCheck> calls_;
  std::vector<std::string> hostNames_;

  std::atomic<NetworkReductions> agreed_{0};  // what the network reduces for all ranks

  mutable std::mutex mutex_;
  std::condition_variable ticketChanged_;
  uint64_t issued_ = 0;      // number of tickets issued
  uint64_t nextTicket_ = 0;  // the ticket that may run
  uint32_t waiters_ = 0;     // on ticketChanged_
  std::condition_variable room_;
  uint32_t roomWaiters_ = 0;          // on room_
  std::atomic<uint32_t> pending_{0};  // issued_ - nextTicket_
  bool busy_ = false;                 // a launch is running
  bool closed_ = false;
};

StatusOr<std::unique_ptr<DataPath>> openHostDataPath(const DataPath::Setup& setup);

}  // namespace ncclrun
