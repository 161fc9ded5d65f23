// The flight recorder's memory that the agent gave this process (native/include/ncclrun.h): which index of its table
// belongs to which communicator. datapath/recorder.h writes the entries.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "agent/messages.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/recorder_claim.h"
#include "ncclrun.h"

namespace ncclrun {

class FlightRecorder {
 public:
  // Maps the agent's memory and writes who we are into it.
  Status open(int descriptor, int32_t jobRank);
  // An index for the communicator; null without memory, or while all indices are taken. It is free again when nobody
  // holds it any more. The memory stays mapped until the process ends.
  std::shared_ptr<const RecorderClaim> claim(const Membership& membership, const std::string& name);

 private:
  void release(uint16_t index);

  std::mutex mutex_;
  Mapping mapping_;
  ncclrunRecorder* memory_ = nullptr;
  std::array<bool, NCCLRUN_RECORDER_COMMUNICATORS> taken_{};
  uint32_t next_ = 0;  // index to try first: those used longest ago keep their operations' names longest
};

}  // namespace ncclrun
