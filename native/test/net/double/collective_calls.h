// The double's collective network (ncclCollNet), whatever the version of the table that leads to it. It checks that the
// callers keep the rules of the interface, all members of a group together, does what is planted, and leaves the rest
// to the example plugin.
#pragma once
#include <cstddef>
#include <cstdint>

#include "collective.h"
#include "net/plugin/abi.h"

// The example plugin's table, under another name than its own.
extern "C" collTable exampleCollectiveTable;

namespace ncclrun::test::doubled::collective {

namespace abi = ncclrun::net::plugin::abi;

int begin(void** context, uint64_t communicatorId, abi::Log log);
int finalize(void* context);
int devices(int* count);
int properties(int device, netProperties* out);

int listen(void* context, int device, void* handle, void** listener);
int connect(void** handles, int members, int rank, void* listener, void** comm);
int reduceSupport(int type, int op, int* supported);
int closeListen(void* listener);
int closeColl(void* comm);

int regMr(void* comm, void* data, size_t bytes, int type, void** registration);
int deregMr(void* comm, void* registration);

int iallreduce(void* comm, void* send, void* receive, size_t count, int type, int op, void* sendRegistration,
               void* receiveRegistration, void** request);
int iallgather(void* comm, void* send, collPart receive, size_t bytesPerRank, size_t windowOffset, size_t windowBytes,
               void* sendRegistration, void** request);
int ireducescatter(void* comm, collPart send, void* receive, size_t bytesPerRank, size_t windowOffset,
                   size_t windowBytes, int type, int op, void* receiveRegistration, void** request);
int iflush(void* comm, void* data, int bytes, void* registration, void** request);
int test(void* request, int* done, int* bytes);

}  // namespace ncclrun::test::doubled::collective
