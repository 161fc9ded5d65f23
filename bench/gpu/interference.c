/* --interference: what operations that run all the time beside products of matrices cost these. */
#include "interference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"
#include "product_bench.h"

enum { PRODUCTS = 40, LONGER = 2 }; /* operations go on for so many times as long as products alone */

typedef struct {
  cudaStream_t compute;
  cudaEvent_t began, ended;
  Product product;
} Products;

static void make(Products* mine) {
  int least, greatest;
  CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CUDA(cudaStreamCreateWithPriority(&mine->compute, cudaStreamNonBlocking, least));
  CUDA(cudaEventCreate(&mine->began));
  CUDA(cudaEventCreate(&mine->ended));
  CUDA(product_make(&mine->product, mine->compute));
  CUDA(cudaStreamSynchronize(mine->compute));
}

static void multiply_all(const Products* mine) {
  CUDA(cudaEventRecord(mine->began, mine->compute));
  for (int i = 0; i < PRODUCTS; i++) CUDA(product_compute(&mine->product, mine->compute));
  CUDA(cudaEventRecord(mine->ended, mine->compute));
}

static double passed(const Products* mine) {
  float time;
  CUDA(cudaEventSynchronize(mine->ended));
  CUDA(cudaEventElapsedTime(&time, mine->began, mine->ended));
  return largest(time);
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* Milliseconds of all products beside so many operations, the slowest rank; -1: an operation has failed. */
static double beside(const Products* mine, const Library* library, Case one, int operations) {
  ncclResult_t result = ncclSuccess;
  barrier();
  /* The products begin once operations are under way, and end while they are. */
  for (int i = 0; i < operations && result == ncclSuccess; i++) {
    if (i == operations / 8) {
      CUDA(cudaEventRecord(mine->ended, stream));
      CUDA(cudaStreamWaitEvent(mine->compute, mine->ended, 0));
      multiply_all(mine);
    }
    result = enqueue(library, one, stream);
  }
  if (operations == 0) multiply_all(mine);
  const double time = passed(mine);
  if (operations == 0) return time;
  return largest(result != ncclSuccess || stream_wait(library) != 0) > 0 ? -1 : time;
}

/* Over the rounds. */
static double median_beside(const Products* mine, const Library* library, Case one, int operations) {
  double times[101];
  for (int i = -1; i < rounds; i++) {
    const double time = beside(mine, library, one, operations);
    if (time < 0) return time;
    if (i >= 0) times[i] = time;
  }
  qsort(times, rounds, sizeof *times, by_size);
  return times[rounds / 2];
}

void interference(Case one) {
  Products mine;
  unsigned long long* wrong;
  make(&mine);
  CUDA(cudaMalloc((void**)&wrong, sizeof *wrong));
  CUDA(cudaMemset(wrong, 0, sizeof *wrong));
  under_way(60, "products of matrices");
  const double alone = median_beside(&mine, &libraries[OURS], one, 0);
  if (rank == 0) printf("%d products of matrices alone: %.2f ms\n", PRODUCTS, alone);
  Figure figures[LIBRARIES];
  measure(one, figures);
  for (int n = 0; n < LIBRARIES; n++) {
    if (!figures[n].measured) continue;
    under_way(120, "%s: %s of %zu bytes beside products", libraries[n].name, kind_names[one.kind], one.bytes);
    const int operations = (int)ceil(LONGER * alone * 1e3 / figures[n].median);
    const double with = median_beside(&mine, &libraries[n], one, operations);
    if (rank != 0) continue;
    if (with < 0) printf("%s: failed\n", libraries[n].name);
    if (with > 0)
      printf("%s: beside %s of %zu bytes, %.1f us each: %.2f ms, %.1f %% of the speed lost\n", libraries[n].name,
             kind_names[one.kind], one.bytes, figures[n].median, with, 100 * (1 - alone / with));
  }
  unsigned long long here = 0;
  CUDA(product_check(&mine.product, wrong, mine.compute));
  CUDA(cudaMemcpyAsync(&here, wrong, sizeof here, cudaMemcpyDefault, mine.compute));
  CUDA(cudaStreamSynchronize(mine.compute));
  if (total((double)here) > 0) {
    if (rank == 0) printf("the product is wrong\n");
    atomic_fetch_add(&shared->wrong, 1);
  }
}
