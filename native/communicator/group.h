// ncclGroupStart and ncclGroupEnd: what a thread calls between them is begun together at the outermost end. A call
// outside a group is a group of its own.
#pragma once
#include <memory>
#include <vector>

#include "communicator/communicator.h"

namespace ncclrun {

class Group {
 public:
  // The calling thread's.
  static Group& current();

  void begin() { depth_++; }
  // ncclSuccess, ncclInProgress (a non-blocking communicator is under way), or the first error of the group.
  ncclResult_t end();
  // The same, but what was queued is not begun: `simulation` says how long it would take.
  ncclResult_t simulateEnd(ncclSimInfo_t* simulation);

  // Queues, or begins at once outside a group. `operation` is checked already.
  ncclResult_t add(const std::shared_ptr<Communicator>& communicator, const Operation& operation,
                   ncclrunStream_t stream);
  // Makes the handle known, writes it to *out, and joins; *out is NULL again if that fails.
  ncclResult_t join(std::shared_ptr<Communicator> communicator, ncclComm_t* out);

  // A call inside a group failed: the group's end will say so and begin nothing. Returns the code.
  ncclResult_t noteFailure(ncclResult_t code);

 private:
  struct Joining {
    std::shared_ptr<Communicator> communicator;
    ncclComm_t* out;
  };
  struct Queued {
    std::shared_ptr<Communicator> communicator;
    ncclrunStream_t stream;
    Operation operation;
  };

  // What a group has for one communicator.
  struct Batch {
    std::shared_ptr<Communicator> communicator;
    std::vector<Operation> operations;
    std::vector<ncclrunStream_t> streams;  // the first takes the operations
    std::unique_ptr<Announcement> announcement = nullptr;
  };

  static ncclResult_t joinAll(const std::vector<Joining>& joining);
  static std::vector<Batch> batchesOf(const std::vector<Queued>& queued);
  static ncclResult_t enqueueAll(const std::vector<Queued>& queued);
  static ncclResult_t enqueue(Batch& batch);
  static Status predictAll(const std::vector<Queued>& queued, float& microseconds);
  template <typename Run>
  ncclResult_t endWith(const char* function, Run&& run);
  static void forget(const Joining& joining);

  int depth_ = 0;
  Status failure_;
  std::vector<Joining> joining_;
  std::vector<Queued> queued_;
};

}  // namespace ncclrun
