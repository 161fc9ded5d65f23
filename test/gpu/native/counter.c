#include "counter.h"

#include <stdlib.h>

#include "device.h"
#include "rank.h"

Counter makeCounter(size_t count, uint32_t number) {
  Counter counter = {.count = count, .first = number * 1000003u, .step = 0};
  const size_t bytes = count * sizeof(uint32_t);
  uint32_t* const values = malloc(bytes);
  if (values == NULL) failed("no memory");
  for (int other = 1; other < ranks; other++) counter.step += (uint32_t)other * 77773u + number;
  const uint32_t own = rank == 0 ? counter.first : (uint32_t)rank * 77773u + number;
  for (size_t i = 0; i < count; i++) values[i] = rank == 0 ? own + (uint32_t)i : own;
  counter.send = makeMemory(bytes);
  counter.receive = rank == 0 ? counter.send : makeMemory(bytes);
  const cudaStream_t stream = makeStream();
  copy(counter.send, values, bytes, stream);
  MUST(ended(stream));
  for (size_t i = 0; i < count; i++) values[i] = counter.first + (uint32_t)i; /* the sum before the first */
  copy(counter.receive, values, bytes, stream);
  MUST(ended(stream));
  endStream(stream);
  free(values);
  return counter;
}

void endCounter(Counter* counter) {
  if (counter->receive != counter->send) freeMemory(counter->receive);
  freeMemory(counter->send);
}

void increase(const Counter* counter, ncclComm_t comm, cudaStream_t stream) {
  MUST(ncclAllReduce(counter->send, counter->receive, counter->count, ncclUint32, ncclSum, comm, stream));
}

void checkCounter(const Counter* counter, uint64_t times, cudaStream_t stream) {
  uint32_t* const values = malloc(counter->count * sizeof *values);
  if (values == NULL) failed("no memory");
  copy(values, counter->receive, counter->count * sizeof *values, stream);
  MUST(ended(stream));
  const uint32_t expected = counter->first + (uint32_t)times * counter->step;
  for (size_t i = 0; i < counter->count; i++) {
    if (values[i] == expected + (uint32_t)i) continue;
    failed("a sum of %zu elements over %llu all-reduces: element %zu is %u, expected %u", counter->count,
           (unsigned long long)times, i, values[i], expected + (uint32_t)i);
  }
  free(values);
}
