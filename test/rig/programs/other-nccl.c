/* Stands in for the libnccl.so.2 that a program comes with: every call fails and says whose it was. */
#include "nccl.h"

const char* ncclGetLastError(ncclComm_t comm) {
  (void)comm;
  return "the program's own library was called";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  (void)id;
  return ncclInternalError;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  (void)comm, (void)size, (void)id, (void)rank;
  return ncclInternalError;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t* config) {
  (void)comm, (void)color, (void)key, (void)part, (void)config;
  return ncclInternalError;
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operator,
                           ncclComm_t comm, cudaStream_t stream) {
  (void)from, (void)to, (void)count, (void)type, (void)operator,(void) comm, (void)stream;
  return ncclInternalError;
}
/* What only the engine has: the test must not get so far. */
ncclResult_t ncclrunStreamSynchronize(void* stream) {
  (void)stream;
  return ncclInternalError;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  (void)comm;
  return ncclInternalError;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  (void)comm;
  return ncclInternalError;
}
