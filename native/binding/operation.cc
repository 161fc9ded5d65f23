// Operations for Node: each goes to its communicator's own stream and comes back as a promise.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "binding/arguments.h"
#include "binding/communicator.h"
#include "binding/error.h"
#include "binding/module.h"
#include "device/element.h"

namespace ncclrun::binding {
namespace {

// OperationKind of worker/engine/native.ts, in its order.
enum class Kind : uint32_t {
  barrier,
  send,
  receive,
  allReduce,
  allGather,
  reduceScatter,
  broadcast,
  reduce,
  allToAll,
  gather,
  scatter,
  kinds
};

// How many times `count` elements a rank's buffers hold.
enum class Extent { none, one, perRank };

struct Extents {
  Extent send;
  Extent receive;
};

constexpr Extents kExtents[] = {
    {Extent::none, Extent::none},        // barrier
    {Extent::one, Extent::none},         // send
    {Extent::none, Extent::one},         // receive
    {Extent::one, Extent::one},          // allReduce
    {Extent::one, Extent::perRank},      // allGather
    {Extent::perRank, Extent::one},      // reduceScatter
    {Extent::one, Extent::one},          // broadcast
    {Extent::one, Extent::one},          // reduce
    {Extent::perRank, Extent::perRank},  // allToAll
    {Extent::one, Extent::perRank},      // gather
    {Extent::perRank, Extent::one},      // scatter
};
static_assert(std::size(kExtents) == static_cast<size_t>(Kind::kinds));

struct Operation {
  std::shared_ptr<Comm> comm;
  Kind kind;
  void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;
  std::vector<uint8_t> factor;  // of a pre-multiplied sum, else empty
};

// The memory of a view that must hold `count` elements per extent; null for a rank that has no such buffer.
void* buffer(const Napi::Value& value, const char* name, const Operation& operation, Extent extent) {
  if (value.IsNull() || extent == Extent::none) return nullptr;
  const auto bytes = viewArgument(value, name);
  const size_t parts = extent == Extent::perRank ? operation.comm->size : 1;
  if (operation.count > bytes.size() / elementBytes(operation.type) / parts)
    throw wrongArgument(value.Env(), name, "large enough for `count` elements");
  return bytes.data();
}

// `at(i)` is argument i of operate() in native.ts.
template <typename At>
Operation read(Napi::Env env, At&& at) {
  Operation operation;
  operation.comm = openComm(at(0));
  const auto kind = integerArgument<uint32_t>(at(1), "kind");
  operation.count = integerArgument<uint64_t>(at(4), "count");
  const auto type = integerArgument<uint32_t>(at(5), "type");
  const auto op = integerArgument<uint32_t>(at(6), "operator");
  operation.peer = integerArgument<int32_t>(at(7), "peer");
  if (kind >= static_cast<uint32_t>(Kind::kinds)) throw wrongArgument(env, "kind", "an OperationKind");
  if (type >= ncclNumTypes) throw wrongArgument(env, "type", "an ncclDataType_t");
  if (op > ncclMaxRedOp) throw wrongArgument(env, "operator", "an ncclRedOp_t");
  operation.kind = static_cast<Kind>(kind);
  operation.type = static_cast<ncclDataType_t>(type);
  operation.op = static_cast<ncclRedOp_t>(op);
  if (const Napi::Value factor = at(8); !factor.IsNull()) {
    const auto bytes = viewArgument(factor, "factor");
    if (bytes.size() != elementBytes(operation.type)) throw wrongArgument(env, "factor", "one element");
    operation.factor.assign(bytes.begin(), bytes.end());
  }
  operation.send = buffer(at(2), "send", operation, kExtents[kind].send);
  operation.receive = buffer(at(3), "receive", operation, kExtents[kind].receive);
  return operation;
}

ncclResult_t queueWith(const Operation& one, ncclRedOp_t op) {
  ncclComm_t comm = one.comm->comm;
  const cudaStream_t stream = one.comm->queue();
  switch (one.kind) {
    case Kind::barrier:
      return ncclrunBarrier(comm, one.comm->stream);
    case Kind::send:
      return ncclSend(one.send, one.count, one.type, one.peer, comm, stream);
    case Kind::receive:
      return ncclRecv(one.receive, one.count, one.type, one.peer, comm, stream);
    case Kind::allReduce:
      return ncclAllReduce(one.send, one.receive, one.count, one.type, op, comm, stream);
    case Kind::allGather:
      return ncclAllGather(one.send, one.receive, one.count, one.type, comm, stream);
    case Kind::reduceScatter:
      return ncclReduceScatter(one.send, one.receive, one.count, one.type, op, comm, stream);
    case Kind::broadcast:
      return ncclBroadcast(one.send, one.receive, one.count, one.type, one.peer, comm, stream);
    case Kind::reduce:
      return ncclReduce(one.send, one.receive, one.count, one.type, op, one.peer, comm, stream);
    case Kind::allToAll:
      return ncclAlltoAll(one.send, one.receive, one.count, one.type, comm, stream);
    case Kind::gather:
      return ncclGather(one.send, one.receive, one.count, one.type, one.peer, comm, stream);
    case Kind::scatter:
      return ncclScatter(one.send, one.receive, one.count, one.type, one.peer, comm, stream);
    case Kind::kinds:
      break;
  }
  return ncclInternalError;
}

ncclResult_t queue(Operation& one) {
  if (one.factor.empty()) return queueWith(one, one.op);
  ncclRedOp_t op = ncclNumOps;
  ncclResult_t result =
      ncclRedOpCreatePreMulSum(&op, one.factor.data(), one.type, ncclScalarHostImmediate, one.comm->comm);
  if (result != ncclSuccess) return result;
  result = queueWith(one, op);
  const ncclResult_t destroyed = ncclRedOpDestroy(op, one.comm->comm);
  return result == ncclSuccess ? destroyed : result;
}

// What an engine thread gets back from us when everything queued so far has ended.
struct Ended {
  std::shared_ptr<Settler> settler;
  std::shared_ptr<Pending> pending;
  ncclResult_t queued;

  static void callback(void* argument, ncclResult_t result) {
    const std::unique_ptr<Ended> self(static_cast<Ended*>(argument));
    self->settler->end(self->pending, self->queued != ncclSuccess ? self->queued : result);
  }
};

void pin(Pending& pending, const Napi::Value& buffer) {
  if (buffer.IsObject()) pending.pinned.push_back(Napi::Persistent(buffer.As<Napi::Object>()));
}

// Settles `pending` when what is queued on the communicator's stream has ended: with the error of queueing, if there
// was one, else with the operations'.
void settleAtEnd(Napi::Env env, const Comm& comm, const std::shared_ptr<Pending>& pending, ncclResult_t queued) {
  const auto settler = Settler::of(env);
  settler->begin(pending);
  auto ended = std::make_unique<Ended>(Ended{settler, pending, queued});
  const ncclResult_t result = ncclrunStreamCallback(comm.stream, Ended::callback, ended.get());
  if (result == ncclSuccess) {
    ended.release();  // the callback's now
  } else {
    settler->end(pending, result);
  }
}

}  // namespace

Napi::Value operate(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  Operation operation = read(env, [&](size_t i) { return call[i]; });
  check(env, queue(operation), operation.comm->comm);
  const auto pending = pendingOf(env, operation.comm);
  pin(*pending, call[2]);
  pin(*pending, call[3]);
  settleAtEnd(env, *operation.comm, pending, ncclSuccess);
  return pending->deferred.Promise();
}

Napi::Value group(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  if (!call[0].IsArray()) throw wrongArgument(env, "operations", "an array");
  const auto list = call[0].As<Napi::Array>();
  std::vector<Operation> operations;
  for (uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::Value entry = list.Get(i);
    if (!entry.IsArray()) throw wrongArgument(env, "operations", "an array of arrays");
    const auto values = entry.As<Napi::Array>();
    operations.push_back(read(env, [&](size_t at) { return values.Get(static_cast<uint32_t>(at)); }));
  }

  ncclResult_t queued = ncclGroupStart();
  std::string sentence;
  for (Operation& operation : operations) {
    if (queued != ncclSuccess) break;
    queued = queue(operation);
    if (queued != ncclSuccess) sentence = ncclGetLastError(operation.comm->comm);
  }
  const ncclResult_t ended = ncclGroupEnd();  // ends the group whatever happened in it
  if (queued != ncclSuccess) throw ncclError(env, queued, sentence);
  const std::string failure = ended == ncclSuccess ? "" : ncclGetLastError(nullptr);

  // Operations of one communicator end together.
  auto promises = Napi::Array::New(env, operations.size());
  std::vector<std::pair<Comm*, std::shared_ptr<Pending>>> pendings;
  for (uint32_t i = 0; i < operations.size(); ++i) {
    const auto& comm = operations[i].comm;
    auto found = std::find_if(pendings.begin(), pendings.end(), [&](auto& one) { return one.first == comm.get(); });
    if (found == pendings.end()) found = pendings.insert(found, {comm.get(), pendingOf(env, comm)});
    const auto values = list.Get(i).As<Napi::Array>();
    pin(*found->second, values.Get(2u));
    pin(*found->second, values.Get(3u));
    promises.Set(i, found->second->deferred.Promise());
  }
  for (const auto& [comm, pending] : pendings) {
    if (ended != ncclSuccess) pending->sentence = failure;
    settleAtEnd(env, *comm, pending, ended);
  }
  return promises;
}

}  // namespace ncclrun::binding
