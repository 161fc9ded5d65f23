// Operations that only move data treat it as bytes.
#include "cuda/kernels/barrier.cuh"
#include "cuda/kernels/block.cuh"
#include "cuda/kernels/probe.cuh"

NCCLRUN_ALL_ROUTINES(Spread, ncclrun::cuda::Bytes)
NCCLRUN_ROUTINE_ALONE(AllGather, ncclrun::cuda::Bytes)
NCCLRUN_ROUTINE_ALONE(Broadcast, ncclrun::cuda::Bytes)
NCCLRUN_ROUTINE_ALONE(AllToAll, ncclrun::cuda::Bytes)
NCCLRUN_ROUTINE_ALONE(SendReceive, ncclrun::cuda::Bytes)
NCCLRUN_SINGLE_STEP_KERNELS(AllGather, AllGather, ncclrun::cuda::Bytes)
NCCLRUN_SINGLE_STEP_KERNELS(Broadcast, Broadcast, ncclrun::cuda::Bytes)
NCCLRUN_SINGLE_STEP_KERNELS(AllToAll, AllToAll, ncclrun::cuda::Bytes)
NCCLRUN_SINGLE_STEP_KERNELS(Gather, Gather, ncclrun::cuda::Bytes)
NCCLRUN_SINGLE_STEP_KERNELS(Scatter, Scatter, ncclrun::cuda::Bytes)
NCCLRUN_SINGLE_STEP_KERNELS(SendReceive, SendReceive, ncclrun::cuda::Bytes)

// Sends and receives of several protocols. Grid and block: as those of one.
extern "C" __global__ void __launch_bounds__(512, 1) ncclrunMixed(NCCLRUN_PARAMETER(ncclrun::cuda::Launch) launch) {
  ncclrun::cuda::runMixedBlock<ncclrun::cuda::Bytes, ncclrun::cuda::SendReceive>(launch);
}

// Block: 32 threads.
extern "C" __global__ void __launch_bounds__(64, 1) ncclrunBarrier(NCCLRUN_PARAMETER(ncclrun::cuda::Launch) launch) {
  ncclrun::cuda::runBarrier(launch);
}

// Grid: a block per rank, or one; block: 512 threads.
extern "C" __global__ void __launch_bounds__(512, 1)
    ncclrunProbe(NCCLRUN_PARAMETER(ncclrun::cuda::Launch) launch, uint32_t* wrong, uint64_t* clock) {
  ncclrun::cuda::probe(launch, wrong, clock);
}
