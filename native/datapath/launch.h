// What a stream runs: the operations that a caller grouped, each with the variant that the plan chose for it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datapath/borrowed_thread.h"
#include "datapath/data_path.h"
#include "plan/plan_view.h"
#include "plan/variants.h"

namespace ncclrun {

struct Task {
  Operation operation;
  plan::VariantRecord variant{};
  uint32_t firstChannel = 0;  // of a ring, which takes variant.channels channels from this one, modulo the plan's
  uint64_t bytes = 0;         // size by which the variant was chosen: the larger of a rank's send and receive buffers
  uint64_t record = 0;        // of the flight recorder; 0 none
};
// True if the task of a message sends.
inline bool isSend(const Task& task) { return task.operation.send != nullptr; }

struct Launch {
  uint64_t ticket = 0;  // operations of one communicator run in the order of their tickets
  Task first;
  std::vector<Task> more;
};

// Runs launches: a communicator's data path.
class Launcher {
 public:
  virtual ~Launcher() = default;
  // `borrowed`: the borrowed thread on which this begins; null if the thread may run it without a time limit.
  virtual Status run(const Launch& launch, BorrowedThread* borrowed) = 0;
  virtual uint64_t spinNanoseconds() const = 0;
};

// Size by which the plan chooses an operation's variant.
uint64_t deciding(const Operation& operation, uint32_t ranks);

// Fills in task.variant: the first listed variant whose requirements are all in `satisfied` (bits of plan::kRequires…),
// in the row of the operation's collective and size. Returns ncclInvalidUsage if the plan has none.
Status chooseVariant(const PlanView& plan, uint32_t satisfied, Task& task);

// Variant that chooseVariant() chooses for operations of this size.
Status variantAt(const PlanView& plan, uint32_t satisfied, plan::Collective collective, uint64_t bytes,
                 ncclrunVariant& out);

// Time that the plan predicts for the task's variant and size; 0 if it predicts nothing.
double predictedMicroseconds(const Task& task);

// It combines the ranks' elements by an operator.
bool reduces(plan::Collective collective);
std::string nameOf(ncclDataType_t type);
std::string nameOf(ncclRedOp_t op);

}  // namespace ncclrun
