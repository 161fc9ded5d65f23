// One rank's membership in a communicator, from the call that joins to the call that frees.
//
//   joining ──plan──▶ wiring ──connected──▶ closing ──barriers──▶ ready ──▶ finalizing ──▶ finalized
//      │                 │                     │                    │           │
//      └─────────────────┴──────── failed, or aborted by the user ──┴───────────┘
//
// One that is ready, or failed after it was, can be `revoked`: it takes no operations, but communicators can be made of
// its ranks.
//
// The control thread moves it on: blocking callers wait for a state, the others poll. `closing` is the set-up's last
// barrier: it waits for peers, so it runs on the caller that waits for it or on a thread of its own, never on the
// control thread.
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
#include "communicator/gpu_location.h"
#include "communicator/registrations.h"
#include "communicator/user_operators.h"
#include "datapath/data_path.h"

namespace ncclrun {

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  enum class State { joining, wiring, closing, ready, finalizing, finalized, revoked, failed, aborted };

  // Not yet begun. A communicator of the agent's plan, or of one given by hand.
  Communicator(const ncclUniqueId& id, uint32_t size, uint32_t rank, const CommSettings& settings,
               const std::optional<cuda::Gpu>& gpu = {});
  static Status fromPlan(std::vector<std::byte> plan, int segmentFd, uint32_t rank, int listenFd,
                         std::shared_ptr<Communicator>& out);
  // Of the ranks of `parent`, which is ready or revoked, that call with this colour; NCCL_SPLIT_NOCOLOR: a member of
  // none, which is `finalized` when the others' split needs it no more.
  static Status split(Communicator& parent, int colour, int order, const CommSettings& settings,
                      std::shared_ptr<Communicator>& out);
  // Of the ranks of `parent`, which may also be broken, that are not left out (ascending, not the caller).
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
  // None: it lives on the host device.
  const std::optional<cuda::Gpu>& gpu() const { return gpu_; }
  // From now on its queue takes any number of operations at once.
  void letQueueGrow() { queueGrows_.store(true, std::memory_order_relaxed); }
  // From now on operations are carried out as those of so many bytes; kOwnBytes: of their own.
  void chooseAs(uint64_t bytes) { chosenAs_.store(bytes, std::memory_order_relaxed); }
  State state() const { return state_.load(std::memory_order_acquire); }

  // Ranks of one communicator in one process have different default-stream slots (host/default_stream_slots.h). Set
  // before anything is queued.
  void setDefaultStreamSlot(uint32_t defaultStreamSlot) { defaultStreamSlot_ = defaultStreamSlot; }
  uint32_t defaultStreamSlot() const { return defaultStreamSlot_; }
  // Ranks that could wait for each other: of one communicator of the agent's.
  bool hasSameId(const Communicator& other) const;
  bool isSplit() const { return split_.has_value(); }
  // An order of communicators on which all ranks agree.
  static bool earlier(const Communicator& one, const Communicator& other);

  // Begins the way to `ready`. `callerCloses`: the caller goes on to waitReady() at once and waits for nothing else
  // first.
  void start(bool callerCloses);
  // Waits until the communicator is ready, failed or aborted. Success or the reason.
  Status waitReady();

  // ncclInProgress, success, or what broke the communicator.
  Status asyncError();
  // The sentence of what broke it; empty if nothing did.
  std::string failure();

  // Success if communicators can be made of the ranks of this one; `broken`: also if it is broken.
  Status divisible(const char* function, bool broken);

  // Before enqueue() of the same operations on the same stream, beside other communicators': first of all of them the
  // one, then of all the other (datapath/data_path.h).
  std::unique_ptr<Announcement> announce(std::span<Operation> operations, ncclrunStream_t stream);
  void consent(Announcement& announcement);
  // Success if operations can be queued there, as far as that can be told.
  Status checkStream(ncclrunStream_t stream) const;
  // Queues operations; numbers and hashes them in this order, unless it fails. Where the queue is full a blocking
  // communicator waits, a non-blocking one says ncclInProgress, until there is room.
  ncclResult_t enqueue(std::span<Operation> operations, ncclrunStream_t stream,
                       std::unique_ptr<Announcement> announcement);
  // What comes on `later` from now on waits for what is on `earlier`.
  Status order(ncclrunStream_t later, ncclrunStream_t earlier);
  // The data path of a ready communicator, else null with the sentence set; `function` names the caller.
  DataPath* ready(const char* function);

  // Blocking: returns when finalized. Else ncclInProgress, unless there is nothing to wait for.
  Status finalize();
  // What has to happen before the last reference goes: finalizes, tells the agent. ncclInvalidUsage: it is still
  // joining, nothing was done. `differing`: of a communicator that this finalizes, that its ranks' calls differ.
  Status close(Status& differing);
  // Ends what is under way here at once and tells the agent, which tells the others; nobody leaves.
  Status revoke(const char* function);
  // Ends everything here at once and tells the agent. `scope` all: which ends it at all other ranks; alone: those of
  // them fail that wait for this one, now or later. `reason` may be empty.
  void abort(const std::string& reason, FailureScope scope);

  UserOperators& operators() { return operators_; }
  const UserOperators& operators() const { return operators_; }
  Registrations& registrations() { return registrations_; }

  // On the control thread: the agent reports that the communicator is broken.
  void brokenByAgent(const AbortedMessage& message);
  // The same: a rank is gone from it, while the others go on.
  void peerGone(const PeerGoneMessage& message);

 private:
  ncclrunStream_t slotOf(ncclrunStream_t stream) const;
  bool settled() const;
  bool mayBeFull() const { return !queueGrows_.load(std::memory_order_relaxed); }
  bool enter(State from, State to);
  void becomeReady(State from);
  void failWith(Status status, bool notifyOthers);
  Status statusNow();
  Status reportedStatus();  // statusNow() for the program; from then on the telemetry page shows it as reported

  void onWelcome(const Status& status, const WelcomeMessage& welcome);
  bool place(const Answer& answer);
  void onPlan(Answer answer);
  Status openPlan(Answer& answer);
  bool stepWiring();
  void beginClosing();
  void runClosing();
  void finishClosing();
  bool stepFinalizing();
  void sendLeave(LeaveHow how, const std::string& reason);
  LeaveHow leaving(FailureScope scope, LeaveHow alone, LeaveHow other);
  void sendFailing(const Status& status, FailureScope scope);
  std::string context();  // who we are, for sentences

  // A requested split whose membership is not known yet.
  struct Split {
    const char* function;
    Membership parent;
    std::shared_ptr<Communicator> numbers;  // the parent until it has numbered the round: when it begins
    bool shrinks;                           // which of its numbers
    uint32_t round;
    int32_t colour;
    int32_t order;
    LeftOut leftOut;  // of the parent's ranks
  };
  void takeRound();
  static Status part(Communicator& parent, Split split, const CommSettings& settings,
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
  Status status_;             // why failed or aborted; guarded by mutex_
  std::string hostName_;      // guarded by mutex_
  bool joined_ = false;       // the agent may count on us; guarded by mutex_
  bool sentFailing_ = false;  // guarded by mutex_
  Status differing_;          // as it was finalized; guarded by mutex_
  bool sentLeave_ = false;    // of the control thread: the agent has been notified
  bool setUp_ = false;        // it was ready; guarded by mutex_
  bool callerCloses_ = false;

  GpuLocation gpuLocation_;
  Descriptor listener_;
  std::variant<Mapping, std::vector<std::byte>> plan_;
  std::shared_ptr<ncclrunTelemetrySlot> telemetry_;  // null: nobody looks
  std::unique_ptr<DataPath> dataPath_;               // set under mutex_ before `wiring`, then constant

  UserOperators operators_;
  Registrations registrations_;

  std::atomic<bool> queueGrows_{false};
  std::atomic<uint64_t> chosenAs_{kOwnBytes};
  std::mutex queueMutex_;  // order of numbers = order in the data path
  // Of what has been queued.
  struct Called {
    uint64_t operations = 0;
    uint64_t hash = 0;    // rolling, of the collectives
    uint64_t hashed = 0;  // how many these are
  };
  Called called_;
};

}  // namespace ncclrun
