// The product of matrices of examples/overlap, for the benchmark.
#include "../../examples/overlap/product.h"

#include "product_bench.h"

cudaError_t product_make(Product* product, cudaStream_t stream) {
  const auto allocate = [](float*& memory, size_t count) {
    return cudaMalloc(reinterpret_cast<void**>(&memory), count * sizeof(float));
  };
  cudaError_t state = allocate(product->left, size_t{kRows} * kDepth);
  if (state == cudaSuccess) state = allocate(product->right, size_t{kDepth} * kColumns);
  if (state == cudaSuccess) state = allocate(product->result, size_t{kRows} * kColumns);
  return state == cudaSuccess ? fillMatrices(product->left, product->right, stream) : state;
}

cudaError_t product_compute(const Product* product, cudaStream_t stream) {
  return multiply(product->left, product->right, product->result, stream);
}

cudaError_t product_check(const Product* product, unsigned long long* wrong, cudaStream_t stream) {
  return checkProduct(product->result, wrong, stream);
}
