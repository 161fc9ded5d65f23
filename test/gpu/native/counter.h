/* Sums that show how often an operation has run: rank 0 gives what it had, the others the same each time. Modulo 2^32.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "ncclrun.h"

typedef struct {
  size_t count;
  uint32_t* send;    /* device memory */
  uint32_t* receive; /* rank 0: the same */
  uint32_t first, step;
} Counter;
/* In a communicator of all ranks. The numbers are the same for the same `number`. */
Counter makeCounter(size_t count, uint32_t number);
void endCounter(Counter* counter);
/* One more all-reduce. */
void increase(const Counter* counter, ncclComm_t comm, cudaStream_t stream);
/* That it has been increased so often, in every element. Waits for the stream. */
void checkCounter(const Counter* counter, uint64_t times, cudaStream_t stream);
