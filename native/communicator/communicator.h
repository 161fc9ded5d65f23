// One rank's membership in a communicator, from the call that joins to the call that frees.
//
//   joining ──plan──▶ connecting ──connected──▶ synchronizing ──barriers──▶ ready ──▶ finalizing ──▶ finalized
//      │                  │                          │                        │           │
//      └──────────────────┴───────── failed, or aborted by the user ──────────┴───────────┘
//
// A communicator that is ready, or failed after it was ready, can be `revoked`: it takes no operations, but
// ncclCommSplit and ncclCommShrink can make communicators of its ranks.
//
// The control thread performs the transitions: blocking callers wait for a state, the others poll. `synchronizing` is
// the barrier at the end of the set-up: it waits for peers, so it runs on the caller that waits for it or on its own
// thread, never on the control thread.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/agent_client.h"
#include "agent/config.h"
#include "agent/messages.h"
#include "base/descriptor.h"
#include "communicator/debug_report.h"
#include "communicator/gpu_location.h"
#include "communicator/registrations.h"
#include "communicator/user_operators.h"
#include "datapath/data_path.h"

namespace ncclrun {

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  enum class State { joining, connecting, synchronizing, ready, finalizing, finalized, revoked, failed, aborted };

  // Creates a communicator that start() begins: with the agent's plan, or with a plan given by hand.
  Communicator(const ncclUniqueId& id, uint32_t size, uint32_t rank, const CommSettings& settings,
               const std::optional<cuda::Gpu>& gpu = {});
  static Status fromPlan(std::vector<std::byte> plan, int segmentFd, uint32_t rank, int listenFd,
                         std::shared_ptr<Communicator>& out);
  // Creates a communicator of the ranks of `parent`, which is ready or revoked, that pass this colour. A rank with
  // NCCL_SPLIT_NOCOLOR is a member of none: its communicator becomes `finalized` once the other ranks no longer need
  // it.
  static Status split(Communicator& parent, int colour, int order, const CommSettings& settings,
                      std::shared_ptr<Communicator>& out);
  // Creates a communicator of the ranks of `parent`, which may have failed, without those in `leftOut` (ascending, not
  // the caller).
  static Status shrink(Communicator& parent, LeftOut leftOut, const CommSettings& settings,
                       std::shared_ptr<Communicator>& out);
  ~Communicator();

  // False for a split whose membership is not known yet.
  bool hasMembership() const { return hasMembership_.load(std::memory_order_acquire); }
  // Valid if hasMembership().
  uint32_t rank() const { return membership_.rank; }
  uint32_t size() const { return membership_.size; }
  bool excluded() const { return split_.has_value() && split_->colour < 0; }
  const CommSettings& settings() const { return settings_; }
  // The GPU; none for the host device.
  const std::optional<cuda::Gpu>& gpu() const { return gpu_; }
  // Removes the limit of the number of queued operations.
  void letQueueGrow() { queueGrows_.store(true, std::memory_order_relaxed); }
  // Makes the plan choose the variant of each later operation as for this size; kOwnBytes: by the operation's own size.
  void chooseAs(uint64_t bytes) { chosenAs_.store(bytes, std::memory_order_relaxed); }
  State state() const { return state_.load(std::memory_order_acquire); }

  // Ranks of one communicator in one process have different default-stream slots (host/default_stream_slots.h). Set
  // before anything is queued.
  void setDefaultStreamSlot(uint32_t defaultStreamSlot) { defaultStreamSlot_ = defaultStreamSlot; }
  uint32_t defaultStreamSlot() const { return defaultStreamSlot_; }
  // True if both are ranks of one communicator, so that they may wait for each other.
  bool hasSameId(const Communicator& other) const;
  bool isSplit() const { return split_.has_value(); }
  // Defines an order of communicators on which all ranks agree.
  static bool precedes(const Communicator& one, const Communicator& other);

  // Begins the set-up. `callerRunsBarrier`: the caller calls waitReady() next and waits for nothing else before.
  void start(bool callerRunsBarrier);
  // Waits until the communicator is ready, failed or aborted. Returns success or the reason.
  Status waitReady();

  // Returns ncclInProgress, success, or the error that broke the communicator.
  Status asyncError();
  // Returns the sentence of the error that broke the communicator; empty if it has not failed.
  std::string failure();

  // Returns success if communicators can be made of this one's ranks; `broken`: also after it has failed.
  Status checkSplittable(const char* function, bool broken);

  // Called before enqueue() of the same operations on the same stream. A group of several communicators calls
  // announce() for all of them, then consent() for all (datapath/data_path.h).
  std::unique_ptr<Announcement> announce(std::span<Operation> operations, ncclrunStream_t stream);
  void consent(Announcement& announcement);
  // Returns an error if the stream is known to be unusable for this communicator's operations.
  Status checkStream(ncclrunStream_t stream) const;
  // Queues operations; numbers and hashes them in this order, unless it fails. If the queue is full, a blocking
  // communicator waits for room and a non-blocking one returns ncclInProgress.
  ncclResult_t enqueue(std::span<Operation> operations, ncclrunStream_t stream,
                       std::unique_ptr<Announcement> announcement);
  // Makes operations queued on `later` from now on wait for those queued on `earlier`.
  Status order(ncclrunStream_t later, ncclrunStream_t earlier);
  // The NICs of a host of a ready communicator, as listNics() has them.
  Status nics(uint32_t host, std::span<ncclrunNic> out, size_t& count) const;
  // Returns the data path of a ready communicator, else null and sets the last error; `function` names the caller.
  DataPath* ready(const char* function);

  // Finalizes. A blocking communicator waits until it is finalized; a non-blocking one returns ncclInProgress unless it
  // is finalized at once.
  Status finalize();
  // Called before the last reference is dropped: finalizes the communicator and notifies the agent. Returns
  // ncclInvalidUsage and does nothing during the set-up. `differing` receives the error if this finalizes the
  // communicator and finds that the ranks' calls differ.
  Status close(Status& differing);
  // Ends this rank's operations at once and notifies the agent, which notifies the other ranks; no rank leaves.
  Status revoke(const char* function);
  // Ends this rank's operations at once and notifies the agent. `scope`: with `all` the agent ends the communicator at
  // all other ranks; with `alone` only ranks fail that wait for this one, now or later. `reason` may be empty.
  void abort(const std::string& reason, FailureScope scope);

  UserOperators& operators() { return operators_; }
  const UserOperators& operators() const { return operators_; }
  Registrations& registrations() { return registrations_; }

  // Handles the agent's report that the communicator is broken. Runs on the control thread.
  void onAborted(const AbortedMessage& message);
  // Handles the agent's report that a rank has left while the others continue. Runs on the control thread.
  void peerGone(const PeerGoneMessage& message);

 private:
  std::span<const std::byte> planBytes() const;
  ncclrunStream_t slotOf(ncclrunStream_t stream) const;
  bool isSettled() const;
  bool mayBeFull() const { return !queueGrows_.load(std::memory_order_relaxed); }
  bool transition(State from, State to);
  void becomeReady(State from);
  void failWith(Status status, bool notifyOthers);
  Status currentStatus();
  Status reportedStatus();  // currentStatus() for the program; from then on the telemetry page shows it as reported

  void onWelcome(const Status& status, const WelcomeMessage& welcome);
  bool adoptMembership(const Answer& answer);
  void onPlan(Answer answer);
  Status openPlan(Answer& answer);
  bool stepConnecting();
  void beginSetupBarrier();
  void runSetupBarrier();
  void finishSetupBarrier();
  bool stepFinalizing();
  void sendLeave(LeaveHow how, const std::string& reason);
  LeaveHow leaveHow(FailureScope scope, LeaveHow alone, LeaveHow other);
  void reportFailure(const Status& status, FailureScope scope);
  std::string context();  // rank and host, for messages

  struct Leave {
    LeaveHow how;
    std::string reason;
  };

  // A requested split whose membership is not known yet.
  struct Split {
    const char* function;
    Membership parent;
    std::shared_ptr<Communicator> numberingParent;  // the parent, until start() takes the round's number from it
    bool shrinks;                                   // the round counts with the parent's shrinks, not its splits
    uint32_t round;
    int32_t colour;
    int32_t order;
    LeftOut leftOut;  // of the parent's ranks
  };
  void takeRoundNumber();
  static Status makeChild(Communicator& parent, Split split, const CommSettings& settings,
                          std::shared_ptr<Communicator>& out);

  Membership membership_;  // constant once hasMembership_
  std::atomic<bool> hasMembership_{true};
  std::optional<Split> split_;  // constant once begun
  std::atomic<uint32_t> splits_{0};
  std::atomic<uint32_t> shrinks_{0};
  uint32_t defaultStreamSlot_ = 0;
  const CommSettings settings_;
  const std::optional<cuda::Gpu> gpu_;
  bool usesAgent_ = true;
  uint32_t hosts_ = 1;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<State> state_{State::joining};
  Status status_;                 // reason of State::failed or aborted; guarded by mutex_
  std::string hostName_;          // guarded by mutex_
  bool joined_ = false;           // the agent knows that this rank joins; guarded by mutex_
  std::optional<Leave> unsent_;   // this rank left before it joined; guarded by mutex_
  bool failureReported_ = false;  // guarded by mutex_
  Status differing_;              // error of finalize() if the ranks' calls differ; guarded by mutex_
  bool sentLeave_ = false;        // the agent has been notified; used by the control thread only
  bool wasReady_ = false;         // guarded by mutex_
  bool callerRunsBarrier_ = false;
  SetupTimes setupTimes_;  // written by one thread after the other

  GpuLocation gpuLocation_;
  Descriptor listener_;
  std::variant<Mapping, std::vector<std::byte>> plan_;
  std::shared_ptr<ncclrunTelemetrySlot> telemetry_;  // null without a telemetry page
  std::shared_ptr<const RecorderClaim> recorder_;    // null without a flight recorder
  std::unique_ptr<DataPath> dataPath_;               // set under mutex_ before `wiring`, then constant

  UserOperators operators_;
  Registrations registrations_;

  std::atomic<bool> queueGrows_{false};
  std::atomic<uint64_t> chosenAs_{kOwnBytes};
  std::mutex queueMutex_;  // order of numbers = order in the data path
  // Counts and hash of the queued operations.
  struct Called {
    uint64_t operations = 0;
    uint64_t hash = 0;    // rolling hash of the collectives
    uint64_t hashed = 0;  // number of collectives
  };
  Called called_;
};

}  // namespace ncclrun
