// The collective network in the versions 6 to 10 and 12 of the interface (versions.h): the calls of version 11 behind
// the signatures of the others.
#include "versions.h"

extern collTable ncclCollNetPlugin_v11;

// Versions before 11 have one context for the process.
static void* onlyContext;

static int initOnce(netLog log) { return ncclCollNetPlugin_v11.init(&onlyContext, 0, log); }
static int listenOnce(int device, void* handle, void** listenComm) {
  return exampleListen(onlyContext, device, handle, listenComm);
}
static int devices(int* count) { return ncclCollNetPlugin_v11.devices(count); }
static int reduceSupport(int type, int op, int* supported) {
  return ncclCollNetPlugin_v11.reduceSupport(type, op, supported);
}
static int initEach(void** context, uint64_t commId, netLog log) {
  return ncclCollNetPlugin_v11.init(context, commId, log);
}
static int finalize(void* context) { return ncclCollNetPlugin_v11.finalize(context); }

#define COMMON(from)                                                                                    \
  .name = (from).name, .pciPath = (from).pciPath, .guid = (from).guid, .ptrSupport = (from).ptrSupport, \
  .speed = (from).speed, .port = (from).port, .latency = (from).latency, .maxComms = (from).maxComms,   \
  .maxRecvs = (from).maxRecvs

static int properties6(int device, netProperties6* properties) {
  netProperties all;
  const int result = ncclCollNetPlugin_v11.getProperties(device, &all);
  if (result == NET_OK) *properties = (netProperties6){COMMON(all)};
  return result;
}
static int properties7(int device, netProperties7* properties) {
  netProperties all;
  const int result = ncclCollNetPlugin_v11.getProperties(device, &all);
  if (result == NET_OK) *properties = (netProperties7){COMMON(all)};
  return result;
}
static int properties8(int device, netProperties8* properties) {
  netProperties all;
  const int result = ncclCollNetPlugin_v11.getProperties(device, &all);
  if (result == NET_OK) *properties = (netProperties8){COMMON(all), .regIsGlobal = all.regIsGlobal};
  return result;
}
static int properties9(int device, netProperties9* properties) {
  netProperties all;
  const int result = ncclCollNetPlugin_v11.getProperties(device, &all);
  if (result != NET_OK) return result;
  *properties = (netProperties9){COMMON(all),
                                 .regIsGlobal = all.regIsGlobal,
                                 .forceFlush = all.forceFlush,
                                 .members = all.members,
                                 .maxP2pBytes = all.maxP2pBytes,
                                 .maxCollBytes = all.maxCollBytes};
  return result;
}
static int properties12(int device, netProperties12* properties) {
  netProperties all;
  const int result = ncclCollNetPlugin_v11.getProperties(device, &all);
  if (result != NET_OK) return result;
  *properties = (netProperties12){COMMON(all),
                                  .regIsGlobal = all.regIsGlobal,
                                  .forceFlush = all.forceFlush,
                                  .members = {.count = all.members.count},
                                  .maxP2pBytes = all.maxP2pBytes,
                                  .maxCollBytes = all.maxCollBytes,
                                  .maxMultiRequestSize = all.maxMultiRequestSize,
                                  .railId = -1,
                                  .planeId = -1};
  for (int i = 0; i < all.members.count; i++) properties->members.devices[i] = all.members.devices[i];
  return result;
}

static int regMr(void* comm, void* data, size_t bytes, int type, void** registration) {
  return ncclCollNetPlugin_v11.regMr(comm, data, bytes, type, registration);
}
static int regSmallMr(void* comm, void* data, int bytes, int type, void** registration) {
  return bytes < 0 ? NET_INVALID_ARGUMENT : regMr(comm, data, (size_t)bytes, type, registration);
}
static int deregMr(void* comm, void* registration) { return ncclCollNetPlugin_v11.deregMr(comm, registration); }

static int allReduceFew(void* collComm, void* send, void* receive, int count, int type, int op, void* sendRegistration,
                        void* receiveRegistration, void** request) {
  if (count < 0) return NET_INVALID_ARGUMENT;
  return exampleAllReduce(collComm, send, receive, (size_t)count, type, op, sendRegistration, receiveRegistration,
                          request);
}
static int allGather8(void* collComm, void* send, int parts, collPart8* receive, size_t bytesPerRank,
                      size_t windowOffset, size_t windowBytes, void* sendRegistration, void** request) {
  collPart part = {receive->registration, receive->address, receive->bytes};
  return exampleAllGather(collComm, send, parts, &part, bytesPerRank, windowOffset, windowBytes, sendRegistration,
                          request);
}
static int reduceScatter8(void* collComm, int parts, collPart8* send, void* receive, size_t bytesPerRank,
                          size_t windowOffset, size_t windowBytes, int type, int op, void* receiveRegistration,
                          void** request) {
  collPart part = {send->registration, send->address, send->bytes};
  return exampleReduceScatter(collComm, parts, &part, receive, bytesPerRank, windowOffset, windowBytes, type, op,
                              receiveRegistration, request);
}
// Nobody calls it: ptrSupport has no GPU memory.
static int flush(void* comm, void* data, int bytes, void* registration, void** request) {
  (void)comm, (void)data, (void)bytes, (void)registration;
  *request = NULL;
  return NET_INTERNAL_ERROR;
}

#define ALWAYS                                                                                                       \
  .name = "Example", .devices = devices, .connect = exampleJoin, .reduceSupport = reduceSupport, .deregMr = deregMr, \
  .iflush = flush, .test = exampleTestGroup, .closeColl = exampleLeave, .closeListen = exampleCloseListen
#define ONE_CONTEXT .init = initOnce, .listen = listenOnce
#define GATHERS .iallreduce = exampleAllReduce, .iallgather = exampleAllGather, .ireducescatter = exampleReduceScatter
#define EXPORTED __attribute__((visibility("default")))

EXPORTED collTable6 ncclCollNetPlugin_v6 = {ALWAYS, ONE_CONTEXT, .getProperties = properties6, .regMr = regSmallMr,
                                            .iallreduce = allReduceFew};
EXPORTED collTable7 ncclCollNetPlugin_v7 = {ALWAYS, ONE_CONTEXT, .getProperties = properties7, .regMr = regSmallMr,
                                            .iallreduce = allReduceFew};
EXPORTED collTable8 ncclCollNetPlugin_v8 = {ALWAYS,
                                            ONE_CONTEXT,
                                            .getProperties = properties8,
                                            .regMr = regMr,
                                            .iallreduce = allReduceFew,
                                            .iallgather = allGather8,
                                            .ireducescatter = reduceScatter8};
EXPORTED collTable9 ncclCollNetPlugin_v9 = {ALWAYS, ONE_CONTEXT, GATHERS, .getProperties = properties9, .regMr = regMr};
EXPORTED collTable9 ncclCollNetPlugin_v10 = {ALWAYS, ONE_CONTEXT, GATHERS, .getProperties = properties9,
                                             .regMr = regMr};
EXPORTED collTable12 ncclCollNetPlugin_v12 = {ALWAYS,
                                              GATHERS,
                                              .init = initEach,
                                              .listen = exampleListen,
                                              .getProperties = properties12,
                                              .regMr = regMr,
                                              .finalize = finalize};
