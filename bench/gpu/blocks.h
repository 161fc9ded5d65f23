/* How many SMs an operation keeps busy. */
#ifndef BLOCKS_H_
#define BLOCKS_H_

#include <cuda_runtime_api.h>

/* Blocks of the largest kernel of a graph of operations, which is how many SMs it has, as long as those
 * suffice: communication kernels are made to have one each. 0: no kernel, what is moved goes by copy engines. -1: not
 * to be had. */
int blocks_of(cudaGraph_t graph);

#endif
