#define _GNU_SOURCE
#include "blocks.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>

/* Kernels that a library has launched by the driver are none of the runtime's, so the driver is asked. It is there: the
 * runtime has loaded it. */
static CUresult kernel_of(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  static __typeof__(&cuGraphKernelNodeGetParams) ask;
  if (!ask) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver) *(void**)&ask = dlsym(driver, "cuGraphKernelNodeGetParams_v2");
  }
  return ask ? ask(node, params) : CUDA_ERROR_NOT_FOUND;
}

static int blocks_at(cudaGraphNode_t node) {
  enum cudaGraphNodeType type;
  cudaGraph_t inner;
  CUDA_KERNEL_NODE_PARAMS params;
  if (cudaGraphNodeGetType(node, &type) != cudaSuccess) return -1;
  if (type == cudaGraphNodeTypeGraph) return cudaGraphChildGraphNodeGetGraph(node, &inner) ? -1 : blocks_of(inner);
  if (type != cudaGraphNodeTypeKernel) return 0;
  if (kernel_of(node, &params) != CUDA_SUCCESS) return -1;
  return (int)(params.gridDimX * params.gridDimY * params.gridDimZ);
}

int blocks_of(cudaGraph_t graph) {
  size_t count = 0;
  int max = 0;
  if (cudaGraphGetNodes(graph, NULL, &count) != cudaSuccess) return -1;
  cudaGraphNode_t* nodes = malloc((count + 1) * sizeof *nodes);
  if (!nodes || cudaGraphGetNodes(graph, nodes, &count) != cudaSuccess) max = -1;
  for (size_t i = 0; i < count && max >= 0; i++) {
    const int blocks = blocks_at(nodes[i]);
    max = blocks < 0 || blocks > max ? blocks : max;
  }
  free(nodes);
  return max;
}
