// The page of counters that the agent gave this process (native/include/ncclrun.h): which slot belongs to which
// communicator.
#pragma once
#include <cstdint>
#include <mutex>

#include "core/descriptor.h"
#include "core/error.h"
#include "core/messages.h"
#include "ncclrun.h"

namespace ncclrun {

class TelemetryPage {
 public:
  // Maps the agent's page and writes who we are into it.
  Status open(int descriptor, int32_t jobRank);

  // A slot for the communicator, idle; null if there is no page or every slot is taken.
  ncclrunTelemetrySlot* claim(const Membership& membership);
  void release(ncclrunTelemetrySlot* slot);

 private:
  std::mutex mutex_;
  Mapping mapping_;
};

}  // namespace ncclrun
