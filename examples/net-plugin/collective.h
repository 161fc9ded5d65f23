// The collective part of the interface (CollNet): version 11 of its table, and the calls behind it.
#ifndef NET_PLUGIN_COLLECTIVE_H
#define NET_PLUGIN_COLLECTIVE_H

#include "example.h"

enum { COLL_MAX_REQUESTS = 8 };

// ncclDataType_t and ncclRedOp_t, as far as the example reduces them.
enum { COLL_INT8, COLL_UINT8, COLL_INT32, COLL_UINT32, COLL_INT64, COLL_UINT64, COLL_FLOAT16, COLL_FLOAT32, COLL_FLOAT64 };
enum { COLL_SUM, COLL_PROD, COLL_MAX, COLL_MIN };

typedef struct {
  void* registration;
  void* address;
  size_t bytes;
} collPart;

// Version 11 of the interface.
typedef struct {
  const char* name;
  int (*init)(void** context, uint64_t commId, netLog log);
  int (*devices)(int* count);
  int (*getProperties)(int device, netProperties* properties);
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
  int (*makeVDevice)(int* device, netVirtualDevice* members);
  int (*finalize)(void* context);
} collTable;

// reduce.c: bytes of an element; 0: the example does not reduce this type by this operator.
size_t reducible(int type, int op);
// Reduces `count` elements of `from` into `into`.
void reduceInto(void* into, const void* from, size_t count, int type, int op);

// group.c: the calls of the table.
int exampleJoin(void* handles[], int members, int rank, void* listenComm, void** collComm);
int exampleAllReduce(void* collComm, void* send, void* receive, size_t count, int type, int op, void* sendRegistration,
                     void* receiveRegistration, void** request);
int exampleAllGather(void* collComm, void* send, int parts, collPart* receive, size_t bytesPerRank,
                     size_t windowOffset, size_t windowBytes, void* sendRegistration, void** request);
int exampleReduceScatter(void* collComm, int parts, collPart* send, void* receive, size_t bytesPerRank,
                         size_t windowOffset, size_t windowBytes, int type, int op, void* receiveRegistration,
                         void** request);
int exampleTestGroup(void* request, int* done, int* bytes);
int exampleLeave(void* collComm);

#endif
