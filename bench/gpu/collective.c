/* What each collective is: its call, what must come out, and the bandwidth it stands for. */
#include "device.h"
#include "measure.h"
#include "wrong.h"

const char* const kind_names[KINDS] = {"all_reduce", "all_gather",        "reduce_scatter", "broadcast",
                                       "sendrecv",   "alltoall",          "reduce",         "gather",
                                       "scatter",    "alltoall-in-place", "barrier"};
const char* const mode_names[MODES] = {"eager", "graph", "eager-window", "graph-window"};

double bus_factor(int kind) {
  const double others = (double)(ranks - 1) / ranks;
  if (kind == ALL_REDUCE) return 2 * others;
  if (kind == BROADCAST || kind == SEND_RECV || kind == REDUCE) return 1;
  return kind == BARRIER ? 0 : others;
}

static int in_parts(int kind) {
  return kind != ALL_REDUCE && kind != BROADCAST && kind != SEND_RECV && kind != REDUCE && kind != BARRIER;
}

int case_exists(Case one) {
  const size_t unit = sizeof(float) * (in_parts(one.kind) ? (size_t)ranks : 1);
  return one.kind == BARRIER || (one.bytes >= unit && one.bytes % unit == 0);
}

static ncclResult_t all_to_all(const Library* library, const float* send, float* receive, size_t part,
                               cudaStream_t on) {
  ncclResult_t result, first = library->GroupStart();
  for (int peer = 0; peer < ranks && first == ncclSuccess; peer++) {
    first = library->Send(send + (size_t)peer * part, part, ncclFloat, peer, library->comm, on);
    if (first != ncclSuccess) break;
    first = library->Recv(receive + (size_t)peer * part, part, ncclFloat, peer, library->comm, on);
  }
  result = library->GroupEnd();
  return first != ncclSuccess ? first : result;
}

/* Who has no call of its own for it: messages between the root, rank 0, and all. */
static ncclResult_t by_root(const Library* library, int gathers, const float* send, float* receive, size_t part,
                            cudaStream_t on) {
  ncclResult_t result, first = library->GroupStart();
  for (int peer = 0; rank == 0 && peer < ranks && first == ncclSuccess; peer++) {
    first = gathers ? library->Recv(receive + (size_t)peer * part, part, ncclFloat, peer, library->comm, on)
                    : library->Send(send + (size_t)peer * part, part, ncclFloat, peer, library->comm, on);
  }
  if (first == ncclSuccess) {
    first = gathers ? library->Send(send, part, ncclFloat, 0, library->comm, on)
                    : library->Recv(receive, part, ncclFloat, 0, library->comm, on);
  }
  result = library->GroupEnd();
  return first != ncclSuccess ? first : result;
}

static ncclResult_t ring(const Library* library, const float* send, float* receive, size_t count, cudaStream_t on) {
  ncclResult_t result, first = library->GroupStart();
  if (first == ncclSuccess) first = library->Send(send, count, ncclFloat, (rank + 1) % ranks, library->comm, on);
  if (first == ncclSuccess) {
    first = library->Recv(receive, count, ncclFloat, (rank + ranks - 1) % ranks, library->comm, on);
  }
  result = library->GroupEnd();
  return first != ncclSuccess ? first : result;
}

static float* buffer_of(const Library* library, Case one, int which) {
  if (one.kind == ALL_TO_ALL_IN_PLACE) which = 1;
  if (one.mode >= EAGER_WINDOW) return library->window_memory[which];
  return which == 0 ? plain_send : plain_receive;
}

ncclResult_t enqueue(const Library* library, Case one, cudaStream_t on) {
  const float* send = buffer_of(library, one, 0);
  float* receive = buffer_of(library, one, 1);
  const size_t count = one.bytes / sizeof(float), part = count / (size_t)ranks;
  ncclComm_t comm = library->comm;
  switch (one.kind) {
    case ALL_REDUCE:
      return library->AllReduce(send, receive, count, ncclFloat, ncclSum, comm, on);
    case ALL_GATHER:
      return library->AllGather(send, receive, part, ncclFloat, comm, on);
    case REDUCE_SCATTER:
      return library->ReduceScatter(send, receive, part, ncclFloat, ncclSum, comm, on);
    case BROADCAST:
      return library->Broadcast(send, receive, count, ncclFloat, 0, comm, on);
    case SEND_RECV:
      return ring(library, send, receive, count, on);
    case REDUCE:
      return library->Reduce(send, receive, count, ncclFloat, ncclSum, 0, comm, on);
    case GATHER:
      if (library->Gather) return library->Gather(send, receive, part, ncclFloat, 0, comm, on);
      return by_root(library, 1, send, receive, part, on);
    case SCATTER:
      if (library->Scatter) return library->Scatter(send, receive, part, ncclFloat, 0, comm, on);
      return by_root(library, 0, send, receive, part, on);
    case ALL_TO_ALL:
    case ALL_TO_ALL_IN_PLACE:
      if (library->AlltoAll) return library->AlltoAll(send, receive, part, ncclFloat, comm, on);
      return all_to_all(library, send, receive, part, on);
    default: /* BARRIER: who has none takes the smallest collective instead */
      if (library->Barrier) return library->Barrier(comm, on);
      return library->AllReduce(send, receive, 2, ncclFloat, ncclSum, comm, on);
  }
}

void clear(const Library* library, Case one) {
  if (one.kind == BARRIER) return;
  CUDA(cudaMemsetAsync(buffer_of(library, one, 1), 0xff, one.bytes, stream));
  CUDA(fill(buffer_of(library, one, 0), one.bytes / sizeof(float), rank, stream));
  CUDA(cudaStreamSynchronize(stream));
}

unsigned long long wrong_elements(const Library* library, Case one) {
  static unsigned long long* wrong; /* on the GPU */
  unsigned long long found = 0;
  const size_t count = one.bytes / sizeof(float), part = count / (size_t)ranks;
  if (one.kind == BARRIER || ((one.kind == REDUCE || one.kind == GATHER) && rank != 0)) return 0;
  if (one.kind == ALL_TO_ALL_IN_PLACE && library->number == THEIRS) return 0;
  size_t results = count, shift = 0, length = 1;
  Expectation expectation = EXPECT_SUM;
  int from = 0;
  if (one.kind == ALL_GATHER || one.kind == GATHER) expectation = EXPECT_PARTS, length = part;
  if (one.kind == REDUCE_SCATTER) results = part, shift = (size_t)rank * part;
  if (one.kind == BROADCAST) expectation = EXPECT_FROM;
  if (one.kind == SCATTER) expectation = EXPECT_FROM, results = part, shift = (size_t)rank * part;
  if (one.kind == SEND_RECV) expectation = EXPECT_FROM, from = (rank + ranks - 1) % ranks;
  if (one.kind == ALL_TO_ALL || one.kind == ALL_TO_ALL_IN_PLACE)
    expectation = EXPECT_PARTS, length = part, shift = (size_t)rank * part;
  /* Done twice it is undone, and a graph has an even number. */
  if (one.kind == ALL_TO_ALL_IN_PLACE && (one.mode == GRAPH || one.mode == GRAPH_WINDOW))
    expectation = EXPECT_FROM, from = rank, shift = 0;
  if (!wrong) CUDA(cudaMalloc((void**)&wrong, sizeof *wrong));
  CUDA(cudaMemsetAsync(wrong, 0, sizeof *wrong, stream));
  CUDA(check(buffer_of(library, one, 1), results, expectation, shift, length, from, ranks, wrong, stream));
  CUDA(cudaMemcpyAsync(&found, wrong, sizeof found, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  return found;
}
