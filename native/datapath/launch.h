// What a stream runs: the operations that a caller grouped, each with the form that the plan chose for it.
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
  plan::FormRecord form{};
  uint32_t firstChannel = 0;  // of a ring form, which takes form.channels from there on, round the plan's
  uint64_t bytes = 0;         // what the form was chosen by: the larger of one rank's send and receive buffers
};
// Of a message.
inline bool isSend(const Task& task) { return task.operation.send != nullptr; }

struct Launch {
  uint64_t ticket = 0;  // operations of one communicator run in the order of their tickets
  Task first;
  std::vector<Task> more;
};

// Who can run a launch: a communicator's data path.
class Launcher {
 public:
  virtual ~Launcher() = default;
  // `borrowed`: set if this begins on a borrowed thread; null if its time is unbounded.
  virtual Status run(const Launch& launch, BorrowedThread* borrowed) = 0;
  virtual uint64_t spinNanoseconds() const = 0;
};

// Bytes that decide about an operation's form.
uint64_t deciding(const Operation& operation, uint32_t ranks);

// Fills in task.form: the first listed variant whose requirements are all in `satisfied` (bits of plan::kRequires…), in
// the row of the operation's collective and size. Returns ncclInvalidUsage if the plan has none.
Status chooseForm(const PlanView& plan, uint32_t satisfied, Task& task);

// What it would choose for operations of so many bytes.
Status formAt(const PlanView& plan, uint32_t satisfied, plan::Collective collective, uint64_t bytes, ncclrunForm& out);

// What the plan predicts for the task's form and bytes; 0 where it predicts nothing.
double predictedMicroseconds(const Task& task);

// It combines the ranks' elements by an operator.
bool reduces(plan::Collective collective);
std::string nameOf(ncclDataType_t type);
std::string nameOf(ncclRedOp_t op);

}  // namespace ncclrun
