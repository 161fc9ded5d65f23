/* A rank whose buffers are memory of a GPU, whatever device the communicator is on; the driver is the process's.
 *
 *   gpu-buffers join       joins, and prints the communicator's device: the GPU's number, or what ncclGetLastError says
 *   gpu-buffers CALL       joins, then gives memory of GPU 0 where CALL takes a buffer; prints the result and the
 * sentence */
#include <dlfcn.h>
#include <string.h>

#include "must.h"

typedef int (*Init)(unsigned);
typedef int (*Get)(int*, int);
typedef int (*Retain)(void**, int);
typedef int (*Push)(void*);
typedef int (*Allocate)(unsigned long long*, size_t);

static void* symbol(void* driver, const char* name) {
  void* found = dlsym(driver, name);
  CHECK(found != NULL);
  return found;
}

/* A program may load the driver at any time, so also after it has called operations. */
static void* gpuMemory(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(driver != NULL);
  void* context = NULL;
  int device = 0;
  unsigned long long memory = 0;
  CHECK(((Init)symbol(driver, "cuInit"))(0) == 0);
  CHECK(((Get)symbol(driver, "cuDeviceGet"))(&device, 0) == 0);
  CHECK(((Retain)symbol(driver, "cuDevicePrimaryCtxRetain"))(&context, device) == 0);
  CHECK(((Push)symbol(driver, "cuCtxPushCurrent_v2"))(context) == 0);
  CHECK(((Allocate)symbol(driver, "cuMemAlloc_v2"))(&memory, 4096) == 0);
  return (void*)memory;
}

static ncclResult_t callWith(const char* name, void* gpu, void* host, ncclComm_t comm) {
  ncclRedOp_t op;
  if (strcmp(name, "allReduceSend") == 0) return ncclAllReduce(gpu, host, 1, ncclInt32, ncclSum, comm, NULL);
  if (strcmp(name, "allReduceReceive") == 0) return ncclAllReduce(host, gpu, 1, ncclInt32, ncclSum, comm, NULL);
  if (strcmp(name, "send") == 0) return ncclSend((char*)gpu + 128, 1, ncclInt32, 0, comm, NULL);
  if (strcmp(name, "none") == 0) return ncclAllReduce(gpu, gpu, 0, ncclInt32, ncclSum, comm, NULL);
  CHECK(strcmp(name, "scalar") == 0);
  return ncclRedOpCreatePreMulSum(&op, gpu, ncclInt32, ncclScalarDevice, comm);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  ncclUniqueId id;
  int size, rank, device = -1, one = 1, sum = 0;
  ncclComm_t comm;
  MUST(ncclrunGetJob(&id, &size, &rank));
  const ncclResult_t joined = ncclCommInitRank(&comm, size, id, rank);
  if (joined != ncclSuccess) {
    printf("%d %s\n", joined, ncclGetLastError(NULL));
    return 0;
  }
  if (strcmp(argv[1], "join") == 0) {
    printf("%d\n", ncclCommCuDevice(comm, &device) == ncclSuccess ? device : -1);
  } else {
    MUST(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
    const ncclResult_t result = callWith(argv[1], gpuMemory(), &sum, comm);
    printf("%d %s\n", result, result == ncclSuccess ? "" : ncclGetLastError(NULL));
  }
  MUST(ncclCommDestroy(comm));
  return 0;
}
