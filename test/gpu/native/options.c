/* What a program may ask for beside plain operations: non-blocking communicators through every call, operators of its
 * own, registered memory, settings of an older version, simulated groups; and what it asks for in vain.
 *
 *   options RANKS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "rank.h"
#include "scalars.h"
#include "work.h"

/* Of newer versions than nccl.h; programs that were compiled for them load this library too. */
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t ncclCommMemStats(ncclComm_t comm, int stat, uint64_t* value);
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId);

enum { maxCount = 5000 };
static cudaStream_t stream;

/* The call succeeded, or does in a while. */
static void finish(const char* call, ncclComm_t comm, ncclResult_t result) {
  must(call, result == ncclInProgress ? settled(comm) : result, ncclSuccess);
}

static void nonBlocking(void) {
  at("a non-blocking communicator");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = NULL, part = NULL, rest = NULL;
  REFUSED(ncclCommInitRankConfig(&comm, ranks, nextId(), rank, &config), ncclInProgress);
  MUST(settled(comm));
  tryOut(comm, stream, maxCount, 70);
  at("a non-blocking split");
  finish("ncclCommSplit", part, ncclCommSplit(comm, 0, -rank, &part, NULL)); /* as its parent */
  MUST(settled(part));
  tryOut(part, stream, maxCount, 71);
  tryOut(comm, stream, maxCount, 72);
  at("a blocking split of a non-blocking communicator");
  config.blocking = 1;
  MUST(ncclCommSplit(comm, rank == 0 ? NCCL_SPLIT_NOCOLOR : 0, 0, &rest, &config));
  HOLDS((rest == NULL) == (rank == 0));
  if (rest != NULL) tryOut(rest, stream, maxCount, 73);
  if (rest != NULL) MUST(ncclCommDestroy(rest));
  meet();
  at("a non-blocking shrink");
  int first = 0;
  if (rank > 0) {
    REFUSED(ncclCommShrink(comm, &first, 1, &rest, NULL, NCCL_SHRINK_DEFAULT), ncclInProgress);
    MUST(settled(rest));
    tryOut(rest, stream, maxCount, 74);
    finish("ncclCommFinalize", rest, ncclCommFinalize(rest));
    MUST(ncclCommDestroy(rest));
  }
  at("a non-blocking join in a group");
  config.blocking = 0;
  ncclUniqueId id = nextId();
  MUST(ncclGroupStart());
  MUST(ncclCommInitRankConfig(&rest, ranks, id, rank, &config));
  REFUSED(ncclGroupEnd(), ncclInProgress);
  MUST(settled(rest));
  tryOut(rest, stream, maxCount, 75);
  at("the end of non-blocking communicators");
  finish("ncclCommFinalize", rest, ncclCommFinalize(rest));
  finish("ncclCommFinalize", part, ncclCommFinalize(part));
  finish("ncclCommFinalize", comm, ncclCommFinalize(comm));
  MUST(ncclCommDestroy(rest));
  MUST(ncclCommDestroy(part));
  MUST(ncclCommDestroy(comm));
}

/* Ranks that ask for different numbers of multiprocessors, and their parts. */
static void fewMultiprocessors(void) {
  enum { large = 1 << 19 };
  at("few multiprocessors");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.maxCTAs = rank == 0 ? 1 : 3;
  ncclComm_t comm, part;
  MUST(ncclCommInitRankConfig(&comm, ranks, nextId(), rank, &config));
  for (uint64_t seed = 90; seed < 94; seed++) tryOut(comm, stream, large, seed);
  at("few multiprocessors of a part");
  MUST(ncclCommSplit(comm, rank % 2, 0, &part, NULL));
  tryOut(part, stream, large, 94);
  MUST(ncclCommDestroy(part));
  MUST(ncclCommDestroy(comm));
}

/* The first three ranks give numbers up to 2, times a factor of 1 or 2: sums that the smallest type holds exactly. */
static void preMulSum(ncclComm_t comm, const ScalarType* type, ncclScalarResidence_t residence) {
  enum { count = 1000 };
  at("a product and sum of %s, the factor on the %s", type->name, residence == ncclScalarDevice ? "device" : "host");
  static char values[count * 8], seen[count * 8];
  char factor[8], want[8];
  int sum = 0;
  for (int r = 0; r < ranks; r++) sum += r < 3 ? r % 2 + 1 : 0;
  for (int i = 0; i < count; i++) writeScalar(type, values + (size_t)i * type->bytes, rank < 3 ? i % 3 : 0);
  char* const memory = makeMemory(2 * sizeof values);
  char* const onDevice = memory + sizeof values;
  writeScalar(type, factor, rank % 2 + 1);
  copy(memory, values, sizeof values, stream);
  copy(onDevice, factor, sizeof factor, stream);
  MUST(ended(stream));
  ncclRedOp_t op;
  MUST(ncclRedOpCreatePreMulSum(&op, residence == ncclScalarDevice ? onDevice : factor, type->type, residence, comm));
  memset(factor, 0x55, sizeof factor); /* it was read, or lies on the device */
  MUST(ncclAllReduce(memory, memory, count, type->type, op, comm, stream));
  MUST(ncclRedOpDestroy(op, comm));
  REFUSED(ncclRedOpDestroy(op, comm), ncclInvalidArgument);
  copy(seen, memory, sizeof seen, stream);
  MUST(ended(stream));
  for (int i = 0; i < count; i++) {
    writeScalar(type, want, sum * (i % 3));
    if (memcmp(seen + (size_t)i * type->bytes, want, type->bytes) == 0) continue;
    failed("element %d of %d is not %d", i, count, sum * (i % 3));
  }
  freeMemory(memory);
}

static void registered(ncclComm_t comm) {
  at("registered memory");
  Arena arena = makeArena((size_t)4 << 20);
  Work work = {.kind = workAllReduce, .count = maxCount, .seed = 76, .rank = rank, .ranks = ranks};
  HOLDS(place(&arena, &work));
  upload(&arena);
  void *handle = NULL, *nothing = &arena;
  ncclWindow_t windows[2] = {NULL, NULL};
  MUST(ncclCommRegister(comm, arena.device, arena.size, &handle));
  MUST(ncclCommWindowRegister(comm, arena.device, arena.size, &windows[0], NCCL_WIN_DEFAULT));
  MUST(ncclCommWindowRegister(comm, arena.device, arena.size, &windows[1], NCCL_WIN_COLL_SYMMETRIC));
  HOLDS(handle != NULL && windows[0] != NULL && windows[1] != NULL);
  post(&arena, &work, comm, stream);
  MUST(ended(stream));
  download(&arena);
  check(&arena, &work);
  MUST(ncclCommWindowDeregister(comm, windows[1]));
  MUST(ncclCommWindowDeregister(comm, windows[0]));
  MUST(ncclCommDeregister(comm, handle));
  REFUSED(ncclCommDeregister(comm, handle), ncclInvalidArgument);
  REFUSED(ncclCommWindowRegister(comm, arena.device, arena.size, &windows[0], 0x100), ncclInvalidArgument);
  MUST(ncclCommDeregister(comm, NULL));
  MUST(ncclCommWindowDeregister(comm, NULL));
  MUST(ncclMemAlloc(&nothing, 0));
  HOLDS(nothing == NULL);
  MUST(ncclMemFree(NULL));
  REFUSED(ncclMemFree(arena.device + 4096), ncclInvalidArgument);
  endArena(&arena);
}

/* ncclConfig_t of NCCL 2.14 ended behind `blocking`; what lies there in the caller's memory is anything. */
static void olderSettings(void) {
  at("settings of an older version");
  ncclConfig_t config;
  memset(&config, 0x5a, sizeof config);
  config.size = 24;
  config.magic = 0xcafebeef;
  config.version = NCCL_VERSION(2, 14, 3);
  config.blocking = 0;
  ncclComm_t comm;
  const ncclResult_t begun = ncclCommInitRankConfig(&comm, ranks, nextId(), rank, &config);
  must("ncclCommInitRankConfig", begun, ncclInProgress);
  MUST(settled(comm));
  tryOut(comm, stream, maxCount, 77);
  MUST(ncclCommDestroy(comm));
  config.magic = 1;
  REFUSED(ncclCommInitRankConfig(&comm, ranks, nextId(), rank, &config), ncclInvalidArgument);
  HOLDS(strstr(ncclGetLastError(NULL), "NCCL_CONFIG_INITIALIZER") != NULL);
}

static void simulated(ncclComm_t comm) {
  at("a simulated group");
  Arena arena = makeArena((size_t)1 << 20);
  Work work = {.kind = workAllReduce, .count = maxCount, .seed = 78, .rank = rank, .ranks = ranks};
  HOLDS(place(&arena, &work));
  upload(&arena);
  ncclSimInfo_t simulation = NCCL_SIM_INFO_INITIALIZER;
  MUST(ncclGroupStart());
  post(&arena, &work, comm, stream);
  MUST(ncclGroupSimulateEnd(&simulation));
  HOLDS(simulation.estimatedTime > 0 || simulation.estimatedTime == NCCL_UNDEF_FLOAT);
  download(&arena);
  const int* const received = (const int*)(arena.host + work.receiveAt);
  for (size_t i = 1; i < work.count; i++) SAME(received[i], received[0]); /* as it was: nothing has run */
  post(&arena, &work, comm, stream);
  MUST(ended(stream));
  download(&arena);
  check(&arena, &work);
  endArena(&arena);
}

static void inVain(ncclComm_t comm) {
  at("calls that cannot succeed");
  uint64_t bytes = 0;
  ncclUniqueId id;
  REFUSED(ncclCommSuspend(comm, 0), ncclInvalidUsage);
  HOLDS(strstr(ncclGetLastError(NULL), "ncclCommSuspend") != NULL);
  REFUSED(ncclCommResume(comm), ncclInvalidUsage);
  REFUSED(ncclCommMemStats(comm, 9, &bytes), ncclInvalidArgument);
  REFUSED(ncclCommGetUniqueId(comm, &id), ncclInvalidUsage);
  float* const memory = makeMemory(64);
  REFUSED(ncclAllReduce(NULL, memory, 4, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
  HOLDS(strstr(ncclGetLastError(NULL), "sendbuff") != NULL);
  REFUSED(ncclBroadcast(memory, memory, 4, ncclFloat32, ranks, comm, stream), ncclInvalidArgument);
  REFUSED(ncclAllReduce(memory, memory, 4, ncclNumTypes, ncclSum, comm, stream), ncclInvalidArgument);
  REFUSED(ncclAllReduce(memory, memory, 4, ncclFloat32, (ncclRedOp_t)77, comm, stream), ncclInvalidArgument);
  REFUSED(ncclGroupEnd(), ncclInvalidUsage);
  int device = -1;
  REFUSED(ncclCommCuDevice(comm, &device), onGpus() ? ncclSuccess : ncclInvalidUsage);
  SAME(device, onGpus() ? gpuOf(rank) : -1);
  freeMemory(memory);
  tryOut(comm, stream, maxCount, 79); /* none of it did harm */
}

static void body(void) {
  stream = makeStream();
  at("joining");
  ncclComm_t comm = joinAll();
  tryOut(comm, stream, maxCount, 80);
  for (int i = 0; i < scalarTypes; i++) {
    preMulSum(comm, &scalars[i], ncclScalarHostImmediate);
    preMulSum(comm, &scalars[i], ncclScalarDevice);
  }
  registered(comm);
  simulated(comm);
  inVain(comm);
  MUST(ncclCommDestroy(comm));
  nonBlocking();
  fewMultiprocessors();
  olderSettings();
  endStream(stream);
}

int main(int argc, char** argv) {
  const int count = argc == 2 ? atoi(argv[1]) : 0;
  if (count < 2) {
    fprintf(stderr, "usage: options RANKS   (2 at least)\n");
    return 2;
  }
  const int status = startProcesses(count, 60, body);
  if (status == 0) printf("options: %d ranks: right\n", count);
  return status;
}
