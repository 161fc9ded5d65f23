// What NCCL's variables say about how queue pairs are used.
#pragma once
#include <cstdint>

namespace ncclrun::net {

struct VerbsTuning {
  uint32_t queuePairs = 1;      // of a connection: NCCL_IB_QPS_PER_CONNECTION
  bool splits = false;          // each message over all of them: NCCL_IB_SPLIT_DATA_ON_QPS
  uint8_t timeout = 17;         // of an acknowledgement, 4.096 µs × 2^timeout: NCCL_IB_TIMEOUT
  uint8_t retries = 6;          // on some devices 7 means for ever: NCCL_IB_RETRY_CNT
  uint8_t serviceLevel = 0;     // NCCL_IB_SL
  uint8_t trafficClass = 0;     // NCCL_IB_TC
  uint16_t partition = 0;       // index of the partition key: NCCL_IB_PKEY
  bool inlines = true;          // small messages travel in the work request: NCCL_IB_USE_INLINE
  bool relaxesOrdering = true;  // NCCL_IB_PCI_RELAXED_ORDERING
};

inline constexpr uint32_t kMaxQueuePairs = 128;  // of a connection

// Values that are no numbers, or out of range, are as if they were not set.
VerbsTuning verbsTuningOfVariables();

}  // namespace ncclrun::net
