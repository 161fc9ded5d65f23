// The counters of one direction of a connection in the process's flight recorder (native/include/ncclrun.h,
// ncclrunRecorderEdge): they tell which link of a job is slow or carries nothing. One thread at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/recorder_claim.h"
#include "net/net.h"

namespace ncclrun {

class EdgeRecord {
 public:
  struct Facts {
    uint32_t peer;  // rank in the communicator
    uint32_t channel;
    bool sends;
    std::string_view nic;
  };
  // claim null, or all places taken: counts nothing.
  EdgeRecord(std::shared_ptr<const RecorderClaim> claim, const Facts& facts);
  ~EdgeRecord();
  EdgeRecord(const EdgeRecord&) = delete;
  EdgeRecord& operator=(const EdgeRecord&) = delete;

  // Messages handed to the network and carried by it, and bytes of payload carried, since the beginning. sender: asked
  // now and then what it knows of the way; null of a receiver.
  void update(uint64_t handed, uint64_t carried, uint64_t bytes, const net::Sender* sender);

 private:
  // From one question to the next.
  static constexpr uint64_t kTrafficNanoseconds = 50'000'000;

  std::shared_ptr<const RecorderClaim> claim_;
  ncclrunRecorderEdge* edge_ = nullptr;
  uint64_t handed_ = 0, carried_ = 0;
  uint64_t busyNanoseconds_ = 0;
  uint64_t countedUntil_ = 0;  // nanoseconds; 0: it was idle
  uint64_t askedAt_ = 0;       // nanoseconds
};

}  // namespace ncclrun
