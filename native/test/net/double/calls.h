// The double's calls, whatever the version of the table that leads to them. They check that the caller keeps the rules
// of the interface, do what is planted, and leave the rest to the example plugin (examples/net-plugin).
#pragma once
#include <cstddef>
#include <cstdint>

#include "net.h"
#include "net/plugin/abi.h"

namespace ncclrun::test::doubled {

namespace abi = ncclrun::net::plugin::abi;

int begin(void** context, uint64_t communicatorId, abi::Log log, abi::Profiler profiler);
int finalize(void* context);
int devices(int* count);
int properties(int device, netProperties* out);

int listen(void* context, int device, void* handle, void** listener);
int closeListen(void* listener);
// driver null: the version of the table has none.
int connect(void* context, int device, void* handle, void** sender, abi::DeviceHandle** driver);
int accept(void* listener, void** receiver, abi::DeviceHandle** driver);
int closeSend(void* comm);
int closeRecv(void* comm);

int regMr(void* comm, void* data, size_t bytes, int type, void** registration);
int regMrDmaBuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int descriptor, void** registration);
int deregMr(void* comm, void* registration);

int isend(void* comm, void* data, size_t bytes, int tag, void* registration, void** request);
int irecv(void* comm, int count, void** data, size_t* sizes, int* tags, void** registrations, void** request);
int iflush(void* comm, int count, void** data, int* sizes, void** registrations, void** request);
int test(void* request, int* done, int* sizes);

}  // namespace ncclrun::test::doubled
