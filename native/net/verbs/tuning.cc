#include "net/verbs/tuning.h"

#include "base/variables.h"

namespace ncclrun::net {
namespace {

// `value` stays as it is where the variable is not set to a number from `least` to `most`.
template <class Number>
void read(const char* name, int64_t least, int64_t most, Number& value) {
  const char* const text = ncclVariable(name);
  int64_t number = 0;
  if (text != nullptr && parseNumber(text, number) && number >= least && number <= most) value = Number(number);
}

}  // namespace

VerbsTuning verbsTuningOfVariables() {
  VerbsTuning tuning;
  read("NCCL_IB_QPS_PER_CONNECTION", 1, kMaxQueuePairs, tuning.queuePairs);
  read("NCCL_IB_SPLIT_DATA_ON_QPS", 0, 1, tuning.splits);
  read("NCCL_IB_TIMEOUT", 1, 31, tuning.timeout);
  read("NCCL_IB_RETRY_CNT", 0, 7, tuning.retries);
  read("NCCL_IB_SL", 0, 15, tuning.serviceLevel);
  read("NCCL_IB_TC", 0, 255, tuning.trafficClass);
  read("NCCL_IB_FIFO_TC", -1, 255, tuning.fifoTrafficClass);
  read("NCCL_IB_PKEY", 0, 65'535, tuning.partition);
  read("NCCL_IB_USE_INLINE", 0, 1, tuning.inlines);
  read("NCCL_IB_PCI_RELAXED_ORDERING", 0, 2, tuning.relaxesOrdering);
  read("NCCL_IB_ADAPTIVE_ROUTING", 0, 1, tuning.adaptiveRouting);
  read("NCCL_IB_AR_THRESHOLD", 0, UINT32_MAX, tuning.adaptiveThreshold);
  return tuning;
}

}  // namespace ncclrun::net
