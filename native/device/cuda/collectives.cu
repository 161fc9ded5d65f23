// As all_reduce.cu, for the other collectives and algorithms, and a ring of every type and operator's kind.
#include "device/cuda/kernels.cuh"

NCCLRUN_KERNEL(AllReduceTree, treeAllReduce, Sum, Float, float)
NCCLRUN_KERNEL(ReduceScatterRing, ringReduceScatter, Sum, Float, float)
NCCLRUN_KERNEL(ReduceScatterDirect, directReduceScatter, Sum, Float, float)
NCCLRUN_KERNEL(ReduceRing, ringReduce, Sum, Float, float)
NCCLRUN_KERNEL(ReduceTree, treeReduce, Sum, Float, float)
NCCLRUN_KERNEL(ReduceDirect, directReduce, Sum, Float, float)

// These only move: bytes are enough.
NCCLRUN_KERNEL(AllGatherRing, ringAllGather, Copy, Byte, uint8_t)
NCCLRUN_KERNEL(AllGatherDirect, directAllGather, Copy, Byte, uint8_t)
NCCLRUN_KERNEL(BroadcastRing, ringBroadcast, Copy, Byte, uint8_t)
NCCLRUN_KERNEL(BroadcastTree, treeBroadcast, Copy, Byte, uint8_t)
NCCLRUN_KERNEL(BroadcastDirect, directBroadcast, Copy, Byte, uint8_t)
NCCLRUN_KERNEL(AllToAll, directAllToAll, Copy, Byte, uint8_t)
NCCLRUN_KERNEL(Gather, directGather, Copy, Byte, uint8_t)
NCCLRUN_KERNEL(Scatter, directScatter, Copy, Byte, uint8_t)
NCCLRUN_KERNEL(Send, sendTo, Copy, Byte, uint8_t)
NCCLRUN_KERNEL(Receive, receiveFrom, Copy, Byte, uint8_t)

NCCLRUN_KERNEL(AllReduceRing, ringAllReduce, Min, Uint32, uint32_t)
NCCLRUN_KERNEL(AllReduceRing, ringAllReduce, Prod, Uint64, uint64_t)
NCCLRUN_KERNEL(AllReduceRing, ringAllReduce, Average, Int64, int64_t)
NCCLRUN_KERNEL(AllReduceRing, ringAllReduce, PreMulSum, Half, __half)
NCCLRUN_KERNEL(AllReduceRing, ringAllReduce, Max, Double, double)
NCCLRUN_KERNEL(AllReduceRing, ringAllReduce, Sum, Float8e4m3, __nv_fp8_e4m3)
NCCLRUN_KERNEL(AllReduceRing, ringAllReduce, PreMulSum, Float8e5m2, __nv_fp8_e5m2)
