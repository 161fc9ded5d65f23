// The border between the two halves of the engine. Above it are the C interface, groups, communicator states and the
// agent's client (abi/, communicator/, agent/). Below it are the two devices (cuda/, host/) with net/ and algorithm/.
// The upper half never reads the plan; the lower half never talks to the agent.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/recorder_claim.h"
#include "dl/gpu.h"
#include "nccl.h"
#include "ncclrun.h"
#include "plan/plan_format.h"

namespace ncclrun {

// The plan chooses the variant of an operation by its own size.
inline constexpr uint64_t kOwnBytes = ~0ull;

// One call of the user, arguments already checked above. sendRecv: exactly one of send and receive is set.
struct Operation {
  plan::Collective collective = plan::Collective::barrier;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;  // elements, as in the call (AllGather: per rank sent; ReduceScatter: per rank received)
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;        // kPreMulSum (datapath/reduce.h) for every operator made by the user
  const void* scalarAt = nullptr;  // kPreMulSum: where the scalar is read when the operation runs; null: it is
  uint64_t scalar = 0;             // these bytes
  uint32_t peer = 0;               // root, or the peer of a send or receive
  uint64_t number = 0;             // of this communicator, from 1
  uint64_t before = 0;             // rolling hash of the operations before
  uint64_t hash = 0;               // the same with this one
  uint64_t hashed = 0;             // operations that went into the hash
  uint64_t chosenAs = kOwnBytes;   // size by which the plan chooses the variant
};

// Bytes that operations will use often, as the program said. window: all ranks said so, each of a buffer of its own.
struct RegisteredBuffer {
  void* address;
  size_t bytes;
  bool window;
  int flags;  // NCCL_WIN_*, of a window
};

// Operations that a rank has announced to the others before it queues them. If destroyed before they are queued, it
// withdraws them.
class Announcement {
 public:
  Announcement() = default;
  virtual ~Announcement() = default;
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;
};
// The scope of a failure: all ranks of the communicator, or one alone, while the others may continue.
enum class FailureScope { all, alone };

class DataPath {
 public:
  struct Setup {
    std::span<const std::byte> plan;  // a HostPlan; must outlive the DataPath
    int segmentFd = -1;               // mapped, not closed
    uint32_t rank = 0;
    int listenFd = -1;                                     // taken over; -1: no connection from other hosts
    std::optional<cuda::Gpu> gpu = {};                     // none: the host device
    std::shared_ptr<ncclrunTelemetrySlot> telemetry = {};  // may be null; held as long as it is written to
    std::shared_ptr<const RecorderClaim> recorder = {};    // likewise
    // Called on any thread when an operation ended because of an interrupt, or was none that the other ranks call; may
    // be empty.
    std::function<void(const Status&, FailureScope)> failed = {};
  };
  // Checks the plan, maps the segment, starts what the plan needs. Connects nothing yet and never blocks.
  static StatusOr<std::unique_ptr<DataPath>> open(const Setup& setup);
  virtual ~DataPath() = default;

  // Begins connecting the planned edges to other hosts; ncclInProgress until all are there, then ncclSuccess; else the
  // error.
  virtual Status connect() = 0;

  // Before enqueue() of the same operations on the same stream, where a caller queues those of several communicators:
  // announces them to the other ranks and, when all communicators have done so, consents to their announcements. Null:
  // there is nothing to announce.
  virtual std::unique_ptr<Announcement> announce(std::span<const Operation>, ncclrunStream_t) { return nullptr; }
  virtual void consent(Announcement&) {}

  // Queues operations that the caller grouped (at least one), in call order, behind what the stream already has. Never
  // blocks on peers. Sends and receives of one call make progress together. Operations of one DataPath run in the order
  // queued, whatever their streams. `announcement`: of these operations; null: they were not announced.
  virtual Status enqueue(std::span<const Operation> operations, ncclrunStream_t stream,
                         std::unique_ptr<Announcement> announcement) = 0;

  // Makes later work on `later` wait for the work queued on `earlier`.
  virtual Status order(ncclrunStream_t later, ncclrunStream_t earlier) = 0;

  // So much is queued that a caller should wait. There is room again when most of that is done.
  virtual bool full() const = 0;
  // Waits until the queue is not full, or the reason why it never will be.
  virtual Status awaitRoom() = 0;

  // Barrier of the local ranks through the segment, on the calling thread.
  virtual Status nodeBarrier() = 0;

  // What this rank's network can reduce on the way, when connect() has succeeded, as a set of bits that only data paths
  // of one device read; 0: nothing. And what all ranks' networks can: no call asks for more.
  virtual uint64_t networkReductions() const { return 0; }
  virtual void useNetworkReductions(uint64_t) {}

  // This rank leaves in order, after so many collectives, and has nothing under way: peers of this host need not wait.
  virtual void leave(uint64_t collectives) = 0;
  // This rank has aborted the communicator: the same for those of its host that need it.
  virtual void leaveAborted() = 0;
  // A peer is gone from the communicator, with what a wait for it ends with: operations that need it fail, from now on.
  // `waited`: this rank waits for somebody, and for long. Any thread.
  virtual void peerGone(uint32_t rank, const Status& why, bool waited) = 0;

  // Ends every wait of this rank with `status`, from any thread, at once. Queued operations end with it too. Local
  // only: tells no peer.
  virtual void abort(const Status& status, FailureScope scope) = 0;

  // The first error that ended an operation or broke a connection: an abort flag raised by the agent, a lost
  // connection, abort() above.
  virtual Status asyncError() const = 0;

  // True when nothing is queued, running or still to be sent.
  virtual bool idle() const = 0;

  // Of one that is idle and will not be used any more: ncclInvalidUsage where its collectives are known to differ from
  // other ranks'.
  virtual Status compareCalls() = 0;

  // A hint that may make operations faster, never one that they need. forgetBuffer comes once for each that succeeded,
  // unless the DataPath ends before.
  virtual Status registerBuffer(const RegisteredBuffer&) { return {}; }
  virtual void forgetBuffer(const RegisteredBuffer&) {}

  // Microseconds that the plan predicts for the operation; 0 where it predicts nothing. Else why it cannot be queued.
  virtual Status predict(const Operation&, double& microseconds) const {
    microseconds = 0;
    return {};
  }

  // What the plan has for operations of this size.
  virtual Status variant(plan::Collective collective, uint64_t bytes, ncclrunVariant& out) const = 0;

  virtual void info(ncclrunCommInfo& out) const = 0;
  virtual const char* hostName(uint32_t index) const = 0;  // null if out of range
  virtual size_t edges(std::span<ncclrunEdge> out) const = 0;
  // Of GPU memory, that this rank holds for the communicator.
  virtual uint64_t gpuBytes() const { return 0; }
};

}  // namespace ncclrun
