// A plugin's table of any version, with the calls of the newest one. Only adapt.cc knows how the versions differ.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/plugin/table_calls.h"

namespace ncclrun::net::plugin {

// The most buffers of one irecv that the interface allows.
inline constexpr int kMaxReceives = 8;

// Results are those of TableCalls.
class Calls : public TableCalls {
 public:
  virtual int connect(void* context, int device, void* handle, void** sender, abi::DeviceHandle** driver) = 0;
  virtual int accept(void* listener, void** receiver, abi::DeviceHandle** driver) = 0;

  virtual int isend(void* comm, void* data, size_t bytes, int tag, void* registration, void** request) = 0;
  // count is at most kMaxReceives.
  virtual int irecv(void* comm, int count, void** data, size_t* sizes, int* tags, void** registrations,
                    void** request) = 0;
  virtual int iflush(void* comm, int count, void** data, int* sizes, void** registrations, void** request) = 0;
  virtual int test(void* request, int* done, int* sizes) = 0;

  virtual int closeSend(void* comm) = 0;
  virtual int closeRecv(void* comm) = 0;
};

// `table` is what the library exports as ncclNetPlugin_v<version>; it must stay where it is. Null: no such version.
std::unique_ptr<Calls> adapt(int version, void* table);

}  // namespace ncclrun::net::plugin
