// What NCCL's variables say about how queue pairs are used.
#pragma once
#include <cstdint>

namespace ncclrun::net {

struct VerbsTuning {
  uint32_t queuePairs = 1;   // of a connection: NCCL_IB_QPS_PER_CONNECTION
  bool splits = false;       // each message over all of them: NCCL_IB_SPLIT_DATA_ON_QPS
  uint8_t timeout = 17;      // of an acknowledgement, 4.096 µs × 2^timeout: NCCL_IB_TIMEOUT
  uint8_t retries = 6;       // on some devices 7 means for ever: NCCL_IB_RETRY_CNT
  uint8_t serviceLevel = 0;  // NCCL_IB_SL
  uint8_t trafficClass = 0;  // NCCL_IB_TC
  // Of the receiver's advertisements; -1: as of the messages. NCCL_IB_FIFO_TC
  int16_t fifoTrafficClass = -1;
  uint16_t partition = 0;       // index of the partition key: NCCL_IB_PKEY
  bool inlines = true;          // small messages travel in the work request: NCCL_IB_USE_INLINE
  bool relaxesOrdering = true;  // NCCL_IB_PCI_RELAXED_ORDERING
  // Packets take several ways through the network, so that the immediate of a message with more bytes than the
  // threshold travels alone. kByLink: on InfiniBand, not on RoCE. NCCL_IB_ADAPTIVE_ROUTING, NCCL_IB_AR_THRESHOLD
  int8_t adaptiveRouting = kByLink;
  uint32_t adaptiveThreshold = 8192;

  static constexpr int8_t kByLink = -2;
  bool isAdaptive(bool isInfiniBand) const { return adaptiveRouting == kByLink ? isInfiniBand : adaptiveRouting != 0; }
  uint8_t receiversTrafficClass() const { return fifoTrafficClass < 0 ? trafficClass : uint8_t(fifoTrafficClass); }
};

inline constexpr uint32_t kMaxQueuePairs = 128;  // of a connection

// Values that are no numbers, or out of range, are as if they were not set.
VerbsTuning verbsTuningOfVariables();

}  // namespace ncclrun::net
