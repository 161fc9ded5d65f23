// Compares this rank's collectives with those of a rank of another host, where kernels exchange data that do not say to
// which call they belong. The first rank of each host tells the first one of the next host now and then what it has
// called; all ranks of a host compare theirs with each other (call_check.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "datapath/step_call.h"
#include "plan/plan_view.h"

namespace ncclrun {

class RemoteCalls {
 public:
  RemoteCalls(const PlanView& plan, uint32_t rank) : plan_(plan), rank_(rank) {}

  // Whom this rank tells; none: one host has all ranks, or another rank of this host speaks for it.
  std::optional<uint32_t> listener() const;
  // The next collective at which ranks look (CallCheck::isLookedAt()), of this rank or of the other one, in any order
  // and on any thread. ncclInvalidUsage with a sentence that says who called what where both have called unlike ones.
  Status add(const StepCall& own);
  Status addFrom(uint32_t rank, const StepCall& theirs);

 private:
  // The ranks may be so many looks apart.
  static constexpr size_t kMaxCalls = 64;
  Status compare(uint64_t number) const;

  const PlanView& plan_;
  const uint32_t rank_;
  std::mutex mutex_;
  std::map<uint64_t, StepCall> own_, theirs_;  // the latest, by number
  uint32_t from_ = 0;
};

}  // namespace ncclrun
