// A plugin's collective network of any version, with the calls of the newest one. Only collective_adapt.cc knows how
// the versions differ.
#pragma once
#include <memory>

#include "net/plugin/collective_abi.h"
#include "net/plugin/table_calls.h"

namespace ncclrun::net::plugin {

using NewestPart = abi::Part<abi::kNewest>;

// The part of a gathered buffer that one call moves: bytesPerRank of each rank make the whole buffer.
struct GatherWindow {
  size_t bytesPerRank = 0;
  size_t offset = 0;
  size_t bytes = 0;
};

// Results are those of TableCalls.
class CollectiveCalls : public TableCalls {
 public:
  // May block until all members have called it. `handles` and `listener` must stay until it returns.
  virtual int connect(void** handles, int members, int rank, void* listener, void** comm) = 0;
  virtual int reduceSupport(int type, int op, int* supported) = 0;

  virtual int iallreduce(void* comm, void* send, void* receive, size_t count, int type, int op, void* sendRegistration,
                         void* receiveRegistration, void** request) = 0;
  // Whether the table has the next two calls: from version 8 on, and not in every plugin.
  virtual bool hasGather() const = 0;
  virtual int iallgather(void* comm, void* send, const NewestPart& receive, const GatherWindow& window,
                         void* sendRegistration, void** request) = 0;
  virtual int ireducescatter(void* comm, const NewestPart& send, void* receive, const GatherWindow& window, int type,
                             int op, void* receiveRegistration, void** request) = 0;
  virtual int iflush(void* comm, void* data, int bytes, void* registration, void** request) = 0;
  virtual int test(void* request, int* done, int* bytes) = 0;

  virtual int closeColl(void* comm) = 0;
};

// `table` is what the library exports as ncclCollNetPlugin_v<version>; it must stay where it is. Null: no such version.
std::unique_ptr<CollectiveCalls> adaptCollective(int version, void* table);

}  // namespace ncclrun::net::plugin
