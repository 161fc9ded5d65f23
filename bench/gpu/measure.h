/* Times one case with both libraries in turn. */
#ifndef MEASURE_H_
#define MEASURE_H_

#include <cuda_runtime_api.h>

#include "library.h"

enum {
  ALL_REDUCE,
  ALL_GATHER,
  REDUCE_SCATTER,
  BROADCAST,
  SEND_RECV,
  ALL_TO_ALL,
  USUAL, /* those before are measured where nothing is said */
  REDUCE = USUAL,
  GATHER,
  SCATTER,
  ALL_TO_ALL_IN_PLACE,
  BARRIER
};
extern const char* const kind_names[KINDS];
enum { EAGER, GRAPH, EAGER_WINDOW, GRAPH_WINDOW };
extern const char* const mode_names[MODES];

typedef struct {
  int kind, mode;
  size_t bytes; /* of the larger of a rank's two buffers */
} Case;

typedef struct {
  int tried, measured;
  char why_not[256];
  double median, fastest, slowest; /* µs per operation, of the slowest rank, over the rounds */
  double first_rank;               /* median on rank 0 */
  double ratio, factor;            /* to the other library, over the pairs of rounds; 95 %: ratio ÷ and × factor */
  unsigned long long wrong;        /* elements, over all ranks */
  int blocks;                      /* blocks_of the operation, seen in a graph; -1: not seen */
} Figure;

extern cudaStream_t stream;
extern float *plain_send, *plain_receive;
extern size_t window_bytes; /* of every buffer */
extern int rounds;
extern double round_milliseconds, case_seconds;

/* Buffers, stream and events on this rank's GPU. Ends the process where that fails. */
void measure_begin(size_t bytes);
/* Waits for the stream: 0, or -1 if a rank's call of this library has failed and the stream does not end. */
int stream_wait(const Library* library);
/* Whether work that will not end is on the stream, after a stream_wait that failed. */
int stream_stuck(void);
/* A new stream after the communicator that blocked the old one was aborted: 0, or -1 if it does not end. */
int stream_renew(void);

/* What share of bytes / time goes over each GPU's link, as nccl-tests define "bus bandwidth". */
double bus_factor(int kind);
/* Whether there is anything to do: every rank's part has an element at least. */
int case_exists(Case one);
ncclResult_t enqueue(const Library* library, Case one, cudaStream_t on);
void measure(Case one, Figure figures[LIBRARIES]);

/* In a graph: of as many as OPERATIONS_PER_GRAPH. */
void measure_limits(Limits* limits);

enum { OPERATIONS_PER_GRAPH = 20 };
#define CUDA(CALL)                                                                                  \
  do {                                                                                              \
    const cudaError_t error_ = (CALL);                                                              \
    if (error_ != cudaSuccess) die("%s: %s (%s)", #CALL, cudaGetErrorString(error_), shared->what); \
  } while (0)

#endif
