/* One thread with a rank on each of some GPUs, as nccl-tests run with -g: each rank sends to the next one and receives
 * from the one before, all of them in one group; NVIDIA's library ("theirs") and ours in turn, in one process.
 *
 *   one_thread GPUS OURS THEIRS [BYTES...]    the libraries' paths; 8 bytes, 64 KiB, 1 MiB and 16 MiB if none is said
 *
 * Times are of the thread: groups that are posted one behind the other until all of them have ended, per group, the
 * median of the rounds. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "nccl.h"

enum { GPUS = 16, ROUNDS = 9, LARGEST = 64 << 20 };
enum { OURS, THEIRS, LIBRARIES };

typedef struct {
  __typeof__(&ncclCommInitAll) CommInitAll;
  __typeof__(&ncclCommDestroy) CommDestroy;
  __typeof__(&ncclGroupStart) GroupStart;
  __typeof__(&ncclGroupEnd) GroupEnd;
  __typeof__(&ncclSend) Send;
  __typeof__(&ncclRecv) Recv;
  ncclComm_t comms[GPUS];
} Library;

static Library libraries[LIBRARIES];
static int gpus;
static cudaStream_t streams[GPUS];
static char *sent[GPUS], *received[GPUS];

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "one_thread: %s failed\n", what);
  exit(1);
}
#define CUDA(call) check((call) == cudaSuccess, #call)
#define NCCL(call) check((call) == ncclSuccess, #call)

static void* symbol(void* handle, const char* name) {
  void* found = dlsym(handle, name);
  check(found != NULL, name);
  return found;
}

static void join(Library* library, const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  check(handle != NULL, path);
#define NEEDED(NAME) library->NAME = (__typeof__(library->NAME))symbol(handle, "nccl" #NAME)
  NEEDED(CommInitAll);
  NEEDED(CommDestroy);
  NEEDED(GroupStart);
  NEEDED(GroupEnd);
  NEEDED(Send);
  NEEDED(Recv);
#undef NEEDED
  NCCL(library->CommInitAll(library->comms, gpus, NULL));
}

static void exchange(const Library* library, size_t bytes) {
  NCCL(library->GroupStart());
  for (int i = 0; i < gpus; i++) {
    NCCL(library->Send(sent[i], bytes, ncclInt8, (i + 1) % gpus, library->comms[i], streams[i]));
    NCCL(library->Recv(received[i], bytes, ncclInt8, (i + gpus - 1) % gpus, library->comms[i], streams[i]));
  }
  NCCL(library->GroupEnd());
}

static double round_of(const Library* library, size_t bytes, int times) {
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (int i = 0; i < times; i++) exchange(library, bytes);
  for (int i = 0; i < gpus; i++) {
    CUDA(cudaSetDevice(i));
    CUDA(cudaStreamSynchronize(streams[i]));
  }
  clock_gettime(CLOCK_MONOTONIC, &to);
  return ((double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3) / times;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* Every rank's last byte, which is the number of who sent it. */
static void check_received(size_t bytes) {
  for (int i = 0; i < gpus; i++) {
    char last = 0;
    CUDA(cudaMemcpy(&last, received[i] + bytes - 1, 1, cudaMemcpyDeviceToHost));
    CUDA(cudaMemset(received[i], 0, bytes));
    CUDA(cudaDeviceSynchronize());
    check(last == (i + gpus - 1) % gpus + 1, "what was received");
  }
}

static void measure(size_t bytes) {
  double all[LIBRARIES][ROUNDS], median[LIBRARIES];
  const int times = bytes > 1 << 20 ? 50 : 500;
  for (int round = -1; round < ROUNDS; round++) {
    for (int turn = 0; turn < LIBRARIES; turn++) {
      const int n = round % 2 == 0 ? turn : LIBRARIES - 1 - turn;
      const double time = round_of(&libraries[n], bytes, times);
      if (round >= 0) all[n][round] = time;
      check_received(bytes);
    }
  }
  for (int n = 0; n < LIBRARIES; n++) {
    qsort(all[n], ROUNDS, sizeof(double), by_size);
    median[n] = all[n][ROUNDS / 2];
  }
  printf("sendrecv %10zu bytes: ours %8.2f us (%.2f to %.2f), theirs %8.2f (%.2f to %.2f), ratio %.2f\n", bytes,
         median[OURS], all[OURS][0], all[OURS][ROUNDS - 1], median[THEIRS], all[THEIRS][0], all[THEIRS][ROUNDS - 1],
         median[OURS] / median[THEIRS]);
  fflush(stdout);
}

int main(int argc, char** argv) {
  gpus = argc > 3 ? atoi(argv[1]) : 0;
  if (gpus < 2 || gpus > GPUS) {
    fprintf(stderr, "usage: one_thread GPUS OURS THEIRS [BYTES...]   (2 to 16 GPUs)\n");
    return 2;
  }
  for (int i = 0; i < gpus; i++) {
    CUDA(cudaSetDevice(i));
    CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    CUDA(cudaMalloc((void**)&sent[i], LARGEST));
    CUDA(cudaMalloc((void**)&received[i], LARGEST));
    CUDA(cudaMemset(sent[i], i + 1, LARGEST));
    CUDA(cudaDeviceSynchronize());
  }
  for (int n = 0; n < LIBRARIES; n++) join(&libraries[n], argv[2 + n]);
  static const size_t usual[] = {8, 64 << 10, 1 << 20, 16 << 20};
  for (int i = 0; argc <= 4 && i < 4; i++) measure(usual[i]);
  for (int i = 4; i < argc; i++) {
    const long long bytes = atoll(argv[i]);
    check(bytes > 0 && bytes <= LARGEST, "a number of bytes: 1 to 64 MiB:");
    measure((size_t)bytes);
  }
  for (int n = 0; n < LIBRARIES; n++) {
    for (int i = 0; i < gpus; i++) NCCL(libraries[n].CommDestroy(libraries[n].comms[i]));
  }
  return 0;
}
