// The table of a network plugin over TCP.
#include <stdlib.h>

#include "collective.h"

netLog exampleLog;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // several communicators may begin at once

static int init(void** context, uint64_t commId, netConfig* config, netLog log, netProfiler profiler) {
  (void)commId, (void)config, (void)profiler;
  pthread_mutex_lock(&mutex);
  exampleLog = log;
  findDevices();
  pthread_mutex_unlock(&mutex);
  struct context* made = calloc(1, sizeof *made);
  if (made == NULL) return NET_SYSTEM_ERROR;
  pthread_mutex_init(&made->mutex, NULL);
  *context = made;
  return NET_OK;
}

static int finalize(void* context) {
  struct context* made = context;
  freeStages(made);
  pthread_mutex_destroy(&made->mutex);
  free(made);
  return NET_OK;
}

static int devices(int* count) {
  *count = deviceCount();
  return NET_OK;
}

static int getProperties(int index, netProperties* properties) {
  const struct device* device = deviceAt(index);
  if (device == NULL) return NET_INVALID_ARGUMENT;
  *properties = (netProperties){
      .name = (char*)device->name,
      .pciPath = device->pciPath[0] == '\0' ? NULL : (char*)device->pciPath,
      .guid = (uint64_t)index,
      .ptrSupport = NET_HOST_MEMORY,
      .speed = device->speed,
      .maxComms = 65536,
      .maxRecvs = NET_MAX_RECEIVES,
      .members = {.count = 1, .devices = {index}},
      .maxP2pBytes = (size_t)1 << 30,
      .maxCollBytes = (size_t)1 << 30,
      .maxMultiRequestSize = 1,
  };
  return NET_OK;
}

// TCP needs no registration: NULL is a valid one.
static int regMr(void* comm, void* data, size_t bytes, int type, void** registration) {
  (void)comm, (void)data, (void)bytes;
  *registration = NULL;
  if (type == NET_HOST_MEMORY) return NET_OK;
  WARN("the example registers host memory only, not type %d", type);
  return NET_INVALID_USAGE;
}

static int deregMr(void* comm, void* registration) {
  (void)comm, (void)registration;
  return NET_OK;
}

// Nobody calls it: ptrSupport has no GPU memory.
static int iflush(void* comm, int count, void** data, int* bytes, void** registrations, void** request) {
  (void)comm, (void)count, (void)data, (void)bytes, (void)registrations;
  *request = NULL;
  return NET_INTERNAL_ERROR;
}

__attribute__((visibility("default"))) netTable ncclNetPlugin_v11 = {
    .name = "Example",
    .init = init,
    .devices = devices,
    .getProperties = getProperties,
    .listen = exampleListen,
    .connect = exampleConnect,
    .accept = exampleAccept,
    .regMr = regMr,
    .deregMr = deregMr,
    .isend = exampleSend,
    .irecv = exampleReceive,
    .iflush = iflush,
    .test = exampleTest,
    .closeSend = exampleClose,
    .closeRecv = exampleClose,
    .closeListen = exampleCloseListen,
    .finalize = finalize,
};

static int initCollective(void** context, uint64_t commId, netLog log) {
  return init(context, commId, NULL, log, NULL);
}

static int reduceSupport(int type, int op, int* supported) {
  *supported = reducible(type, op) != 0;
  return NET_OK;
}

// Nobody calls it, as iflush.
static int flushCollective(void* comm, void* data, int bytes, void* registration, void** request) {
  (void)comm, (void)data, (void)bytes, (void)registration;
  *request = NULL;
  return NET_INTERNAL_ERROR;
}

__attribute__((visibility("default"))) collTable ncclCollNetPlugin_v11 = {
    .name = "Example",
    .init = initCollective,
    .devices = devices,
    .getProperties = getProperties,
    .listen = exampleListen,
    .connect = exampleJoin,
    .reduceSupport = reduceSupport,
    .regMr = regMr,
    .deregMr = deregMr,
    .iallreduce = exampleAllReduce,
    .iallgather = exampleAllGather,
    .ireducescatter = exampleReduceScatter,
    .iflush = flushCollective,
    .test = exampleTestGroup,
    .closeColl = exampleLeave,
    .closeListen = exampleCloseListen,
    .finalize = finalize,
};
