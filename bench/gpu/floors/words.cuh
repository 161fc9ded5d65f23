// Words that streams write and wait for, by batches of memory operations of the driver.
#pragma once
#include "two_gpus.cuh"

using BatchMemoryOperation = CUresult (*)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
inline BatchMemoryOperation batchMemoryOperation;
inline uint32_t* hostWords;

inline uint32_t* word(bool inHost, int side, int which) {
  return inHost ? hostWords + side * 64 + which : sides[side].words + which;
}
inline void run(cudaStream_t stream, std::vector<CUstreamBatchMemOpParams> batch) {
  if (!batch.empty()) MUST(batchMemoryOperation(stream, unsigned(batch.size()), batch.data(), 0));
}
inline CUstreamBatchMemOpParams writes(uint32_t* to, uint32_t value) {
  CUstreamBatchMemOpParams one{};
  one.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  one.writeValue.address = CUdeviceptr(to);
  one.writeValue.value = value;
  return one;
}
inline CUstreamBatchMemOpParams waits(uint32_t* on) {
  CUstreamBatchMemOpParams one{};
  one.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  one.waitValue.address = CUdeviceptr(on);
  one.waitValue.value = 1;
  one.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  return one;
}

inline void setUpWords() {
  cudaDriverEntryPointQueryResult found;
  MUST(cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", reinterpret_cast<void**>(&batchMemoryOperation), 12000,
                                        cudaEnableDefault, &found));
  MUST(cudaHostAlloc(&hostWords, 4096, cudaHostAllocPortable | cudaHostAllocMapped));
  std::fill_n(hostWords, 1024, 0u);
}
