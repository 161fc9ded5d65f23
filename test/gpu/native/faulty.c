/* A rank of a job of which one rank does something wrong, in a communicator named "planted" beside the job's own. It
 * calls one collective again and again, every time with another count unless it replays a graph.
 *
 *   faulty COLLECTIVE FAULT RANK STEP [graph]    STEP: the number of the faulty call, from 1
 *
 * FAULT: pause, busy, stop, sleep (in uninterruptible sleep), disk (likewise, in a read of FAULTY_FILE), kill, exit,
 * freeze (it says "freeze PID" and waits): in place of the call. inside: stopped during the call. skip, extra: the call
 * is left out, or made twice, and the rank goes on. alone: the others call no more, and the rank does. size, type,
 * operator, order, root: of its call. deadlock: it uses the job's communicator first. leave: it leaves the
 * communicator. none. The environment: FAULTY_STEPS, how many calls there are (12); FAULTY_FILE. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "rank.h"

enum { mostElements = 4096, usual = 512 };

/* Of one call. */
typedef struct {
  const char* collective;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  ncclComm_t comm;
  cudaStream_t stream;
} Call;

static void *from, *to;

static int is(const char* one, const char* other) { return strcmp(one, other) == 0; }

static void make(void* argument) {
  const Call c = *(const Call*)argument;
  const int after = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  if (is(c.collective, "allReduce")) MUST(ncclAllReduce(from, to, c.count, c.type, c.op, c.comm, c.stream));
  if (is(c.collective, "allGather")) MUST(ncclAllGather(from, to, c.count, c.type, c.comm, c.stream));
  if (is(c.collective, "reduceScatter")) MUST(ncclReduceScatter(from, to, c.count, c.type, c.op, c.comm, c.stream));
  if (is(c.collective, "broadcast")) MUST(ncclBroadcast(from, to, c.count, c.type, c.root, c.comm, c.stream));
  if (is(c.collective, "reduce")) MUST(ncclReduce(from, to, c.count, c.type, c.op, c.root, c.comm, c.stream));
  if (is(c.collective, "allToAll")) MUST(ncclAlltoAll(from, to, c.count, c.type, c.comm, c.stream));
  if (is(c.collective, "gather")) MUST(ncclGather(from, to, c.count, c.type, c.root, c.comm, c.stream));
  if (is(c.collective, "scatter")) MUST(ncclScatter(from, to, c.count, c.type, c.root, c.comm, c.stream));
  if (is(c.collective, "barrier")) MUST(ncclrunBarrier(c.comm, (ncclrunStream_t)c.stream));
  if (!is(c.collective, "sendRecv")) return;
  MUST(ncclGroupStart());
  MUST(ncclSend(from, c.count, c.type, after, c.comm, c.stream));
  MUST(ncclRecv(to, c.count, c.type, before, c.comm, c.stream));
  MUST(ncclGroupEnd());
}

static void await(cudaStream_t stream) {
  const ncclResult_t result = ended(stream);
  if (result == ncclSuccess) return;
  /* The peers are told by the engine, not because this process ends. */
  fprintf(stderr, "rank %d: %s\n", rank, ncclGetLastError(NULL));
  exit(3);
}

static void* stopSoon(void* nothing) {
  usleep(200000);
  kill(getpid(), SIGSTOP);
  return nothing;
}

static _Noreturn void stayAway(void) {
  for (;;) pause();
}

/* What a rank does in place of a call. */
static void mischief(const char* fault) {
  if (is(fault, "pause")) stayAway();
  if (is(fault, "stop")) raise(SIGSTOP);
  if (is(fault, "kill")) raise(SIGKILL);
  if (is(fault, "exit")) _exit(9);
  for (volatile int i = 0; is(fault, "busy"); i++) continue;
  /* Whoever waits for a child of vfork() is in state D. */
  if (is(fault, "sleep") && vfork() == 0) {
    for (;;) pause();
  }
  if (is(fault, "disk")) {
    const int file = open(getenv("FAULTY_FILE"), O_RDONLY);
    char byte;
    exit(file >= 0 && read(file, &byte, 1) >= 0 ? 5 : 6);
  }
  if (is(fault, "freeze")) {
    printf("freeze %d\n", getpid());
    fflush(stdout);
    stayAway();
  }
}

/* Changes one argument of the call; false if it has none of that name. */
static int change(Call* call, const char* fault) {
  if (is(fault, "size")) call->count *= 2;
  if (is(fault, "type")) call->type = ncclFloat32;
  if (is(fault, "operator")) call->op = ncclMax;
  if (is(fault, "root")) call->root = (call->root + 1) % ranks;
  if (is(fault, "order")) call->collective = is(call->collective, "allReduce") ? "broadcast" : "allReduce";
  return is(fault, "size") || is(fault, "type") || is(fault, "operator") || is(fault, "root") || is(fault, "order");
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  alarm(60);
  const char *const collective = argv[1], *const fault = argv[2];
  const int faulty = atoi(argv[3]), step = atoi(argv[4]), replays = argc > 5;
  const char* const steps = getenv("FAULTY_STEPS");
  const int last = steps != NULL ? atoi(steps) : 12;
  ncclUniqueId id;
  page = calloc(1, sizeof *page);
  MUST(ncclrunGetJob(&id, &ranks, &rank));
  at("start");
  useDevice(rank);
  const cudaStream_t stream = makeStream();
  ncclComm_t all, comm;
  MUST(ncclCommInitRank(&all, ranks, id, rank));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.commName = "planted";
  MUST(ncclCommSplit(all, 0, rank, &comm, &config));
  from = makeMemory(8 * mostElements * (size_t)ranks);
  to = makeMemory(8 * mostElements * (size_t)ranks);
  Call call = {collective, usual, ncclInt32, ncclSum, 0, comm, stream};
  Graph* graph = replays ? capture(stream, make, &call) : NULL;
  for (int i = 1; i <= last; i++) {
    const int odd = rank == faulty && i == step;
    call = (Call){collective, replays ? usual : usual + (size_t)i, ncclInt32, ncclSum, 0, comm, stream};
    Call other = {"allReduce", 8, ncclInt32, ncclSum, 0, all, stream};
    if (is(fault, "deadlock") && i == step) {
      if (!odd) make(&other);
      if (!odd) await(stream);
    }
    if (is(fault, "alone") && i == step && !odd) stayAway();
    if (is(fault, "inside") && i == step && !odd) usleep(500000);
    if (odd) mischief(fault);
    if (odd && is(fault, "skip")) continue;
    if (odd && is(fault, "leave")) {
      MUST(ncclCommDestroy(comm));
      stayAway();
    }
    pthread_t stopper;
    if (odd && is(fault, "inside") && pthread_create(&stopper, NULL, stopSoon, NULL) != 0) return 4;
    const int times = odd && is(fault, "extra") ? 2 : 1;
    const int changed = odd && change(&call, fault);
    for (int k = 0; k < times; k++) {
      if (graph == NULL) make(&call);
      if (graph != NULL) launch(changed ? capture(stream, make, &call) : graph, stream);
      await(stream);
    }
    if (is(fault, "deadlock") && odd) {
      make(&other);
      await(stream);
    }
    if (i < 3) usleep(1000);
  }
  at("last");
  call = (Call){"allReduce", 3, ncclInt32, ncclSum, 0, comm, stream}; /* whatever a rank has left out shows here */
  make(&call);
  await(stream);
  MUST(ncclCommDestroy(comm));
  MUST(ncclCommDestroy(all));
  printf("ended well\n");
  return 0;
}
