// The pages of counters that the agent gave this process (native/include/ncclrun.h): which slot belongs to which
// communicator.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "agent/messages.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "ncclrun.h"

namespace ncclrun {

class TelemetryPages {
 public:
  // A communicator will claim a slot, or cannot come about: then arrived() follows. True: no slot is left for it, so
  // one more page is to be asked for, which add() follows for.
  bool expect();
  void arrived();
  // Maps a page of the agent's and writes who we are into it. `descriptor` less than 0: there is none, after all.
  Status add(int descriptor, int32_t jobRank);

  // A slot for the communicator, idle; null if there is no page. It is free again when nobody holds it any more: who
  // may still write to it holds it.
  std::shared_ptr<ncclrunTelemetrySlot> claim(const Membership& membership);

 private:
  ncclrunTelemetrySlot* unused();
  void release(ncclrunTelemetrySlot* slot);

  std::mutex mutex_;
  std::vector<Mapping> pages_;
  size_t requested_ = 0;  // pages under way; the first one comes unasked
  size_t expected_ = 0;   // slots that will be claimed
  size_t claimed_ = 0;
};

}  // namespace ncclrun
