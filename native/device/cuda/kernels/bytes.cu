// What only moves: bytes are enough.
#include "device/cuda/block.cuh"
#include "device/cuda/probe.cuh"

NCCLRUN_MODULE(ncclrun::cuda::Bytes)

// Grid: a block per rank; block: 512 threads.
extern "C" __global__ void __launch_bounds__(512, 1)
    ncclrunProbe(const __grid_constant__ ncclrun::cuda::Launch launch, uint32_t* wrong) {
  ncclrun::cuda::probe(launch, wrong);
}
