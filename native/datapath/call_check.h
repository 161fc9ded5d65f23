// Finds out that a rank's collectives differ from those of another rank of its host, where both keep in step all the
// same: two that call all_reduce with unlike operators get wrong results and wait for nobody. Now and then each rank
// writes into the host segment which collective it is at, and compares that with what the others have written.
#pragma once
#include "datapath/data_path.h"
#include "datapath/step_call.h"
#include "plan/plan_view.h"
#include "plan/segment.h"

namespace ncclrun {

class CallCheck {
 public:
  CallCheck(const PlanView& plan, const Segment& segment, uint32_t rank)
      : plan_(plan), segment_(segment), rank_(rank) {}

  // The next operation in their order. ncclInvalidUsage with a sentence that says who called what where the ranks
  // differ; looked for at the first collectives, at ever fewer of the next ones, and then at each 4096th.
  Status add(const Operation& operation) {
    if (operation.collective == plan::Collective::sendRecv) return {};
    last_ = callOf(operation, last_);
    return isLookedAt(last_.number) ? compare() : Status{};
  }
  // The last one differs: waits, but not for long, until the other ranks of this host have made the same call, so that
  // whoever compares all of them sees which are the fewer.
  void awaitOthers() const;
  // The same of all so far, when the rank leaves.
  Status end() const { return last_.number == 0 ? Status{} : compare(); }

  // The last collective added.
  const StepCall& last() const { return last_; }
  // All ranks look at the same collectives.
  static bool isLookedAt(uint64_t number) {
    constexpr uint64_t kEach = 16, kInterval = 4096;
    return number <= kEach || (number & (number - 1)) == 0 || number % kInterval == 0;
  }

 private:
  Status compare() const;

  const PlanView& plan_;
  const Segment& segment_;
  const uint32_t rank_;
  StepCall last_;  // collective
};

}  // namespace ncclrun
