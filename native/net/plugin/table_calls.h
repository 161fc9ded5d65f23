// What a plugin's tables have in common: that of a network (adapt.h) and that of a collective network
// (collective_adapt.h), each of any version, with the calls of the newest one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "net/plugin/abi.h"

namespace ncclrun::net::plugin {

using NewestProperties = abi::Properties<abi::kNewest>;

// Results are those of the plugin, or ncclInvalidArgument for a size that the version cannot express.
class TableCalls {
 public:
  virtual ~TableCalls() = default;
  TableCalls(const TableCalls&) = delete;
  TableCalls& operator=(const TableCalls&) = delete;

  virtual int version() const = 0;
  virtual const char* name() const = 0;  // may be null
  // The first required member that is missing; empty: none.
  virtual std::string missing() const = 0;
  // The same of those that are called before it is known whether the plugin has devices; without any it may lack the
  // others.
  virtual std::string missingAtStart() const = 0;

  // Plugins before version 11 have no context: they leave it null. A collective network's gets no profiler.
  virtual int init(void** context, uint64_t communicatorId, abi::Log log, abi::Profiler profiler) = 0;
  virtual int devices(int* count) = 0;
  virtual int getProperties(int device, NewestProperties* properties) = 0;
  virtual int finalize(void* context) = 0;
  // Whether init() is called for each communicator, and finalize() after it.
  bool hasContexts() const { return version() >= 11; }

  virtual int listen(void* context, int device, void* handle, void** listener) = 0;
  virtual int closeListen(void* comm) = 0;

  virtual int regMr(void* comm, void* data, size_t bytes, int type, void** registration) = 0;
  virtual bool hasDmaBuf() const = 0;
  virtual int regMrDmaBuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int descriptor,
                          void** registration) = 0;
  virtual int deregMr(void* comm, void* registration) = 0;

 protected:
  TableCalls() = default;
};

}  // namespace ncclrun::net::plugin
