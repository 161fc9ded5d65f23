// The other versions of the collective network's table (collective.h has version 11), for engines that do not know that
// one. What differs: the context, the types of sizes, and the members at the end.
#ifndef NET_PLUGIN_VERSIONS_H
#define NET_PLUGIN_VERSIONS_H

#include "collective.h"

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
} netProperties6;

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
} netProperties7;

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
} netProperties8;

// Versions 9 and 10.
typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  netVirtualDevice members;
  size_t maxP2pBytes;
  size_t maxCollBytes;
} netProperties9;

typedef struct {
  int count;
  int devices[8];
} netVirtualDevice12;

typedef struct {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  netVirtualDevice12 members;
  size_t maxP2pBytes;
  size_t maxCollBytes;
  int maxMultiRequestSize;
  int16_t railId;   // -1: unknown
  int16_t planeId;  // -1: unknown
} netProperties12;

typedef struct {
  void* registration;
  void* address;
  uint32_t bytes;
} collPart8;

// Version 6, and 7 with its properties and type of a registration's size.
typedef struct {
  const char* name;
  int (*init)(netLog log);
  int (*devices)(int* count);
  int (*getProperties)(int device, netProperties6* properties);
  int (*listen)(int device, void* handle, void** listenComm);
  int (*connect)(void* handles[], int members, int rank, void* listenComm, void** collComm);
  int (*reduceSupport)(int type, int op, int* supported);
  int (*regMr)(void* comm, void* data, int bytes, int type, void** registration);
  int (*regMrDmaBuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** registration);
  int (*deregMr)(void* comm, void* registration);
  int (*iallreduce)(void* collComm, void* send, void* receive, int count, int type, int op, void* sendRegistration,
                    void* receiveRegistration, void** request);
  int (*iflush)(void* collComm, void* data, int bytes, void* registration, void** request);
  int (*test)(void* request, int* done, int* bytes);
  int (*closeColl)(void* collComm);
  int (*closeListen)(void* listenComm);
} collTable6;

typedef struct {
  const char* name;
  int (*init)(netLog log);
  int (*devices)(int* count);
  int (*getProperties)(int device, netProperties7* properties);
  int (*listen)(int device, void* handle, void** listenComm);
  int (*connect)(void* handles[], int members, int rank, void* listenComm, void** collComm);
  int (*reduceSupport)(int type, int op, int* supported);
  int (*regMr)(void* comm, void* data, int bytes, int type, void** registration);
  int (*regMrDmaBuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** registration);
  int (*deregMr)(void* comm, void* registration);
  int (*iallreduce)(void* collComm, void* send, void* receive, int count, int type, int op, void* sendRegistration,
                    void* receiveRegistration, void** request);
  int (*iflush)(void* collComm, void* data, int bytes, void* registration, void** request);
  int (*test)(void* request, int* done, int* bytes);
  int (*closeColl)(void* collComm);
  int (*closeListen)(void* listenComm);
} collTable7;

typedef struct {
  const char* name;
  int (*init)(netLog log);
  int (*devices)(int* count);
  int (*getProperties)(int device, netProperties8* properties);
  int (*listen)(int device, void* handle, void** listenComm);
  int (*connect)(void* handles[], int members, int rank, void* listenComm, void** collComm);
  int (*reduceSupport)(int type, int op, int* supported);
  int (*regMr)(void* comm, void* data, size_t bytes, int type, void** registration);
  int (*regMrDmaBuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** registration);
  int (*deregMr)(void* comm, void* registration);
  int (*iallreduce)(void* collComm, void* send, void* receive, int count, int type, int op, void* sendRegistration,
                    void* receiveRegistration, void** request);
  int (*iallgather)(void* collComm, void* send, int parts, collPart8* receive, size_t bytesPerRank,
                    size_t windowOffset, size_t windowBytes, void* sendRegistration, void** request);
  int (*ireducescatter)(void* collComm, int parts, collPart8* send, void* receive, size_t bytesPerRank,
                        size_t windowOffset, size_t windowBytes, int type, int op, void* receiveRegistration,
                        void** request);
  int (*iflush)(void* collComm, void* data, int bytes, void* registration, void** request);
  int (*test)(void* request, int* done, int* bytes);
  int (*closeColl)(void* collComm);
  int (*closeListen)(void* listenComm);
} collTable8;

// Versions 9 and 10.
typedef struct {
  const char* name;
  int (*init)(netLog log);
  int (*devices)(int* count);
  int (*getProperties)(int device, netProperties9* properties);
  int (*listen)(int device, void* handle, void** listenComm);
  int (*connect)(void* handles[], int members, int rank, void* listenComm, void** collComm);
  int (*reduceSupport)(int type, int op, int* supported);
  int (*regMr)(void* comm, void* data, size_t bytes, int type, void** registration);
  int (*regMrDmaBuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** registration);
  int (*deregMr)(void* comm, void* registration);
  int (*iallreduce)(void* collComm, void* send, void* receive, size_t count, int type, int op, void* sendRegistration,
                    void* receiveRegistration, void** request);
  int (*iallgather)(void* collComm, void* send, int parts, collPart* receive, size_t bytesPerRank, size_t windowOffset,
                    size_t windowBytes, void* sendRegistration, void** request);
  int (*ireducescatter)(void* collComm, int parts, collPart* send, void* receive, size_t bytesPerRank,
                        size_t windowOffset, size_t windowBytes, int type, int op, void* receiveRegistration,
                        void** request);
  int (*iflush)(void* collComm, void* data, int bytes, void* registration, void** request);
  int (*test)(void* request, int* done, int* bytes);
  int (*closeColl)(void* collComm);
  int (*closeListen)(void* listenComm);
  int (*makeVDevice)(int* device, netVirtualDevice* members);
} collTable9;

typedef struct {
  const char* name;
  int (*init)(void** context, uint64_t commId, netLog log);
  int (*devices)(int* count);
  int (*getProperties)(int device, netProperties12* properties);
  int (*listen)(void* context, int device, void* handle, void** listenComm);
  int (*connect)(void* handles[], int members, int rank, void* listenComm, void** collComm);
  int (*reduceSupport)(int type, int op, int* supported);
  int (*regMr)(void* comm, void* data, size_t bytes, int type, void** registration);
  int (*regMrDmaBuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** registration);
  int (*deregMr)(void* comm, void* registration);
  int (*iallreduce)(void* collComm, void* send, void* receive, size_t count, int type, int op, void* sendRegistration,
                    void* receiveRegistration, void** request);
  int (*iallgather)(void* collComm, void* send, int parts, collPart* receive, size_t bytesPerRank, size_t windowOffset,
                    size_t windowBytes, void* sendRegistration, void** request);
  int (*ireducescatter)(void* collComm, int parts, collPart* send, void* receive, size_t bytesPerRank,
                        size_t windowOffset, size_t windowBytes, int type, int op, void* receiveRegistration,
                        void** request);
  int (*iflush)(void* collComm, void* data, int bytes, void* registration, void** request);
  int (*test)(void* request, int* done, int* bytes);
  int (*closeColl)(void* collComm);
  int (*closeListen)(void* listenComm);
  int (*makeVDevice)(int* device, netVirtualDevice12* members);
  int (*finalize)(void* context);
} collTable12;

#endif
