// A plugin's table of any version, with the calls of the newest one. Only adapt.cc knows how the versions differ.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "net/plugin/abi.h"

namespace ncclrun::net::plugin {

using NewestProperties = abi::Properties<abi::kNewest>;

// The most buffers of one irecv that the interface allows.
inline constexpr int kMaxReceives = 8;

// Results are those of the plugin, or ncclInvalidArgument for a size that the version cannot express.
class Calls {
 public:
  virtual ~Calls() = default;
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  virtual int version() const = 0;
  virtual const char* name() const = 0;  // may be null
  // The first required member that is missing; empty: none.
  virtual std::string missing() const = 0;

  // Plugins before version 11 have no context: they leave it null.
  virtual int init(void** context, uint64_t communicatorId, abi::Log log, abi::Profiler profiler) = 0;
  virtual int devices(int* count) = 0;
  virtual int getProperties(int device, NewestProperties* properties) = 0;
  virtual int finalize(void* context) = 0;
  // Whether init() is called for each communicator, and finalize() after it.
  bool hasContexts() const { return version() >= 11; }

  virtual int listen(void* context, int device, void* handle, void** listener) = 0;
  virtual int connect(void* context, int device, void* handle, void** sender, abi::DeviceHandle** driver) = 0;
  virtual int accept(void* listener, void** receiver, abi::DeviceHandle** driver) = 0;

  virtual int regMr(void* comm, void* data, size_t bytes, int type, void** registration) = 0;
  virtual bool hasDmaBuf() const = 0;
  virtual int regMrDmaBuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int descriptor,
                          void** registration) = 0;
  virtual int deregMr(void* comm, void* registration) = 0;

  virtual int isend(void* comm, void* data, size_t bytes, int tag, void* registration, void** request) = 0;
  // count is at most kMaxReceives.
  virtual int irecv(void* comm, int count, void** data, size_t* sizes, int* tags, void** registrations,
                    void** request) = 0;
  virtual int iflush(void* comm, int count, void** data, int* sizes, void** registrations, void** request) = 0;
  virtual int test(void* request, int* done, int* sizes) = 0;

  virtual int closeSend(void* comm) = 0;
  virtual int closeRecv(void* comm) = 0;
  virtual int closeListen(void* comm) = 0;

 protected:
  Calls() = default;
};

// `table` is what the library exports as ncclNetPlugin_v<version>; it must stay where it is. Null: no such version.
std::unique_ptr<Calls> adapt(int version, void* table);

}  // namespace ncclrun::net::plugin
