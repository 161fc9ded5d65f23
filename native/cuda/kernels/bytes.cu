// What only moves: bytes are enough.
#include "cuda/kernels/block.cuh"
#include "cuda/kernels/meeting.cuh"
#include "cuda/kernels/probe.cuh"

NCCLRUN_ALL_ROUTINES(Spread, ncclrun::cuda::Bytes)
NCCLRUN_ROUTINE_ALONE(Gathering, ncclrun::cuda::Bytes)
NCCLRUN_ROUTINE_ALONE(Broadcasting, ncclrun::cuda::Bytes)
NCCLRUN_ROUTINE_ALONE(Exchanging, ncclrun::cuda::Bytes)
NCCLRUN_ROUTINE_ALONE(Passing, ncclrun::cuda::Bytes)
NCCLRUN_TURNS(Gathering, Gathering, ncclrun::cuda::Bytes)
NCCLRUN_TURNS(Broadcasting, Broadcasting, ncclrun::cuda::Bytes)
NCCLRUN_TURNS(Exchanging, Exchanging, ncclrun::cuda::Bytes)
NCCLRUN_TURNS(Collecting, Collecting, ncclrun::cuda::Bytes)
NCCLRUN_TURNS(Dealing, Dealing, ncclrun::cuda::Bytes)
NCCLRUN_TURNS(Passing, Passing, ncclrun::cuda::Bytes)

// Sends and receives of several protocols. Grid and block: as those of one.
extern "C" __global__ void __launch_bounds__(512, 1) ncclrunMixed(NCCLRUN_PARAMETER(ncclrun::cuda::Launch) launch) {
  ncclrun::cuda::runMixedBlock<ncclrun::cuda::Bytes, ncclrun::cuda::Passing>(launch);
}

// Block: 32 threads.
extern "C" __global__ void __launch_bounds__(64, 1) ncclrunMeeting(NCCLRUN_PARAMETER(ncclrun::cuda::Launch) launch) {
  ncclrun::cuda::meetAll(launch);
}

// Grid: a block per rank; block: 512 threads.
extern "C" __global__ void __launch_bounds__(512, 1)
    ncclrunProbe(NCCLRUN_PARAMETER(ncclrun::cuda::Launch) launch, uint32_t* wrong, uint64_t* clock) {
  ncclrun::cuda::probe(launch, wrong, clock);
}
