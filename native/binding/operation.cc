// Operations for Node: each goes to its communicator's own stream and comes back as a promise.
#include <map>
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

constexpr size_t kArguments = 9;  // of Operation in native.ts

struct Operation {
  Comm* comm;  // the arguments keep it
  Kind kind;
  void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;
  std::vector<uint8_t> factor;  // of a pre-multiplied sum, else empty
};

// The memory of a typed array that must hold `count` elements per extent; null for a rank that has no such buffer. That
// its elements have the operation's size was checked before (worker/elements.ts): asking for their type would take as
// long as all the rest of this.
void* buffer(const Napi::Value& value, const char* name, const Operation& operation, Extent extent) {
  if (extent == Extent::none) return nullptr;
  void* data = nullptr;
  size_t length = 0;
  if (napi_get_typedarray_info(value.Env(), value, nullptr, &length, &data, nullptr, nullptr) != napi_ok) {
    if (value.IsNull()) return nullptr;
    throw wrongArgument(value.Env(), name, "a typed array");
  }
  const size_t parts = extent == Extent::perRank ? operation.comm->size : 1;
  if (operation.count > length / parts) throw wrongArgument(value.Env(), name, "large enough for `count` elements");
  return data;
}

// `at(i)` is argument i of operate() in native.ts.
template <typename At>
Operation read(Napi::Env env, At&& at) {
  Operation operation;
  operation.comm = &openOperand(at(0));
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

// Work on the calling thread that the event loop does not notice; about as long as a few small operations.
constexpr size_t kBriefBytes = 32 << 10;

size_t bytesOf(const Operation& one) {
  const auto parts = [&](Extent extent) {
    return extent == Extent::none ? 0 : extent == Extent::one ? 1 : one.comm->size;
  };
  const Extents extents = kExtents[static_cast<size_t>(one.kind)];
  return one.count * elementBytes(one.type) * (parts(extents.send) + parts(extents.receive));
}

// The engine's sentence for what broke the communicator, else the operation's own.
std::string sentenceOf(const Comm& comm, const Endings::Failure& failure) {
  ncclResult_t broken = ncclSuccess;
  ncclCommGetAsyncError(comm.comm, &broken);
  return broken == ncclSuccess || broken == ncclInProgress ? failure.sentence : ncclGetLastError(comm.comm);
}

void tell(Napi::Env env, Comm& comm, const Napi::FunctionReference& watcher) {
  const bool more = comm.endings.want();
  const uint64_t ended = comm.endings.ended();
  if (!more && comm.holds) {
    comm.holds = false;
    Settler::of(env)->release(env);
  }
  auto failures = Napi::Array::New(env);
  for (const auto& failure : comm.endings.takeFailures(ended)) {
    auto pair = Napi::Array::New(env, 2);
    pair.Set(0u, Napi::Number::New(env, static_cast<double>(failure.number)));
    pair.Set(1u, ncclError(env, failure.result, sentenceOf(comm, failure)).Value());
    failures.Set(failures.Length(), pair);
  }
  watcher.Call({Napi::Number::New(env, static_cast<double>(ended)), failures});
}

// The number of what was queued on the communicator's stream, for the watcher; 0: it has ended.
uint64_t begin(Napi::Env env, Comm& comm, ncclResult_t queued, size_t bytes) {
  if (queued == ncclSuccess && bytes <= kBriefBytes) {
    const ncclResult_t result = comm.endings.tryNow(comm.stream);
    if (result == ncclSuccess) return 0;
    if (result != ncclInProgress)
      throw ncclError(env, result, sentenceOf(comm, {0, result, ncclGetLastError(nullptr)}));
  }
  const uint64_t number = comm.endings.begin(comm.stream, queued);
  if (!comm.holds) Settler::of(env)->hold(env);
  comm.holds = true;
  if (!comm.endings.want()) comm.endings.wake();
  return number;
}

}  // namespace

Napi::Value commWatch(const Napi::CallbackInfo& call) {
  const auto comm = openComm(call[0]);
  if (!call[1].IsFunction()) throw wrongArgument(call.Env(), "watcher", "a function");
  const auto settler = Settler::of(call.Env());
  const auto watcher = std::make_shared<Napi::FunctionReference>(Napi::Persistent(call[1].As<Napi::Function>()));
  comm->watcher = settler->onWake([comm, watcher](Napi::Env env) { tell(env, *comm, *watcher); });
  comm->endings.wake = [settler, number = comm->watcher] { settler->wake(number); };
  return call.Env().Undefined();
}

napi_value operate(napi_env env, napi_callback_info call) {
  napi_value arguments[kArguments];
  size_t count = kArguments;
  napi_get_cb_info(env, call, &count, arguments, nullptr, nullptr);  // what is missing is undefined
  try {
    Operation operation = read(env, [&](size_t i) { return Napi::Value(env, arguments[i]); });
    Comm& comm = *operation.comm;
    check(env, queue(operation), comm.comm);
    return Napi::Number::New(env, static_cast<double>(begin(env, comm, ncclSuccess, bytesOf(operation))));
  } catch (const Napi::Error& error) {
    error.ThrowAsJavaScriptException();
    return nullptr;
  }
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

  // Operations of one communicator end together.
  std::map<Comm*, uint64_t> numbers;
  size_t bytes = 0;
  for (const Operation& operation : operations) {
    numbers[operation.comm] = 0;
    bytes += bytesOf(operation);
  }
  // Whoever tries one of several communicators would hold up the others.
  if (numbers.size() > 1) bytes = SIZE_MAX;
  for (auto& [comm, number] : numbers) number = begin(env, *comm, ended, bytes);
  auto result = Napi::Array::New(env, operations.size());
  for (uint32_t i = 0; i < operations.size(); ++i)
    result.Set(i, Napi::Number::New(env, static_cast<double>(numbers.at(operations[i].comm))));
  return result;
}

}  // namespace ncclrun::binding
