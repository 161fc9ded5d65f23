// Operations for Node: each runs on its communicator's own stream, where it settles a promise, or on a device stream.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/element.h"
#include "binding/arguments.h"
#include "binding/communicator.h"
#include "binding/device.h"
#include "binding/error.h"
#include "binding/module.h"

namespace ncclrun::binding {
namespace {

// Twin of OperationKind in worker/engine/native.ts, in its order.
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
  count
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
static_assert(std::size(kExtents) == static_cast<size_t>(Kind::count));

constexpr size_t kArguments = 9;         // length of Operation in native.ts
constexpr size_t kStreamArguments = 10;  // length of StreamOperation

struct Operation {
  Comm* comm;  // the call's arguments keep it alive
  Kind kind;
  void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;
  std::vector<uint8_t> factor;  // of a pre-multiplied sum, else empty
  // Set for a StreamOperation only; `held` and `kept` keep alive what it uses.
  std::shared_ptr<DeviceStream> stream = nullptr;
  std::shared_ptr<Comm> held = nullptr;
  Kept kept = {};
};

// Reads a buffer that is given as [memory, offset] on the stream's device.
void* deviceBuffer(const Napi::Value& value, const char* name, Operation& operation, size_t parts) {
  const auto pair = value.As<Napi::Array>();
  const auto block = objectArgument<DeviceBlock>(pair.Get(0u), name);
  const auto offset = integerArgument<uint64_t>(pair.Get(1u), name);
  const auto& memory = block->memory;
  if (memory == nullptr || offset > memory->bytes ||
      operation.count > (memory->bytes - offset) / elementBytes(operation.type) / parts)
    throw wrongArgument(value.Env(), name, "large enough for `count` elements, or it was freed");
  operation.kept.push_back(memory);
  return static_cast<char*>(memory->address) + offset;
}

// Reads a typed array that must hold `count` elements per extent, or a device buffer. Returns null if the rank has no
// such buffer. worker/engine/elements.ts has checked that the elements have the operation's size: reading their type
// here would double the time of this function.
void* bufferArgument(const Napi::Value& value, const char* name, Operation& operation, Extent extent) {
  if (extent == Extent::none) return nullptr;
  if (operation.stream != nullptr && value.IsArray())
    return deviceBuffer(value, name, operation, extent == Extent::perRank ? operation.comm->size : 1);
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
Operation read(Napi::Env env, At&& at, std::shared_ptr<DeviceStream> stream = nullptr) {
  Operation operation;
  operation.comm = &openOperand(at(0));
  if ((stream == nullptr ? -1 : stream->gpu) != operation.comm->gpu)
    throw ncclError(env, ncclInvalidUsage, "the communicator is of another device than the operation's stream");
  if (stream != nullptr) operation.held = openComm(at(0));
  operation.stream = std::move(stream);
  const auto kind = integerArgument<uint32_t>(at(1), "kind");
  operation.count = integerArgument<uint64_t>(at(4), "count");
  const auto type = integerArgument<uint32_t>(at(5), "type");
  const auto op = integerArgument<uint32_t>(at(6), "operator");
  operation.peer = integerArgument<int32_t>(at(7), "peer");
  if (kind >= static_cast<uint32_t>(Kind::count)) throw wrongArgument(env, "kind", "an OperationKind");
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
  operation.send = bufferArgument(at(2), "send", operation, kExtents[kind].send);
  operation.receive = bufferArgument(at(3), "receive", operation, kExtents[kind].receive);
  return operation;
}

ncclResult_t enqueueWith(const Operation& one, ncclRedOp_t op) {
  ncclComm_t comm = one.comm->comm;
  const cudaStream_t stream = one.stream == nullptr ? one.comm->queue() : one.stream->queue();
  switch (one.kind) {
    case Kind::barrier:
      return ncclrunBarrier(comm, reinterpret_cast<ncclrunStream_t>(stream));
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
    case Kind::count:
      break;
  }
  return ncclInternalError;
}

ncclResult_t enqueue(Operation& one) {
  if (one.factor.empty()) return enqueueWith(one, one.op);
  ncclRedOp_t op = ncclNumOps;
  ncclResult_t result =
      ncclRedOpCreatePreMulSum(&op, one.factor.data(), one.type, ncclScalarHostImmediate, one.comm->comm);
  if (result != ncclSuccess) return result;
  result = enqueueWith(one, op);
  const ncclResult_t destroyed = ncclRedOpDestroy(op, one.comm->comm);
  return result == ncclSuccess ? destroyed : result;
}

// Largest operation that runs on the calling thread, which is the event loop's: it takes about as long as a few small
// operations.
constexpr size_t kInlineBytes = 32 << 10;

size_t bytesOf(const Operation& one) {
  const auto parts = [&](Extent extent) {
    return extent == Extent::none ? 0 : extent == Extent::one ? 1 : one.comm->size;
  };
  const Extents extents = kExtents[static_cast<size_t>(one.kind)];
  return one.count * elementBytes(one.type) * (parts(extents.send) + parts(extents.receive));
}

// Returns the engine's sentence for the error that broke the communicator, else the operation's own.
std::string sentenceOf(const Comm& comm, const Completions::Failure& failure) {
  ncclResult_t broken = ncclSuccess;
  ncclCommGetAsyncError(comm.comm, &broken);
  return broken == ncclSuccess || broken == ncclInProgress ? failure.sentence : ncclGetLastError(comm.comm);
}

void reportCompletions(Napi::Env env, Comm& comm, const Napi::FunctionReference& watcher) {
  const bool more = comm.completions.requestWake();
  const uint64_t ended = comm.completions.ended();
  comm.completions.reported(ended);
  if (!more && comm.holds) {
    comm.holds = false;
    Settler::of(env)->release(env);
  }
  auto failures = Napi::Array::New(env);
  for (const auto& failure : comm.completions.takeFailures(ended)) {
    auto pair = Napi::Array::New(env, 2);
    pair.Set(0u, Napi::Number::New(env, static_cast<double>(failure.number)));
    pair.Set(1u, ncclError(env, failure.result, sentenceOf(comm, failure)).Value());
    failures.Set(failures.Length(), pair);
  }
  watcher.Call({Napi::Number::New(env, static_cast<double>(ended)), failures});
}

// Returns the number by which the watcher knows what was queued on the communicator's stream; 0 if it has ended.
uint64_t beginTracking(Napi::Env env, Comm& comm, ncclResult_t queued, size_t bytes) {
  if (queued == ncclSuccess && bytes <= kInlineBytes && comm.completions.allReported()) {
    const ncclResult_t result = comm.completions.runNow(comm.stream);
    if (result == ncclSuccess) return 0;
    if (result != ncclInProgress)
      throw ncclError(env, result, sentenceOf(comm, {0, result, ncclGetLastError(nullptr)}));
  }
  const uint64_t number = comm.completions.begin(comm.stream, queued);
  if (!comm.holds) Settler::of(env)->hold(env);
  comm.holds = true;
  if (!comm.completions.requestWake()) comm.completions.wake();
  return number;
}

template <typename At>
Operation readOnStream(Napi::Env env, At&& at) {
  const auto stream = objectArgument<DeviceStream>(at(kStreamArguments - 1), "stream");
  useGpu(env, stream->gpu);
  return read(env, at, stream);
}

// Keeps alive what the operation uses until the stream has executed it, or as long as the graph that captures it.
void retain(const Operation& operation) {
  DeviceStream& stream = *operation.stream;
  stream.kept.insert(stream.kept.end(), operation.kept.begin(), operation.kept.end());
  if (stream.capturing) {
    stream.comms.push_back(operation.held);
  } else {
    operation.held->queued = true;
  }
}

// Returns the stream of the host device that captures the group into its graph; null if the group runs now.
DeviceStream* captureStreamOf(Napi::Env env, const std::vector<Operation>& operations) {
  DeviceStream* captureStream = nullptr;
  for (const Operation& operation : operations)
    if (operation.stream != nullptr && operation.stream->gpu < 0 && operation.stream->capturing)
      captureStream = operation.stream.get();
  for (const Operation& operation : operations)
    if (captureStream != nullptr && operation.stream.get() != captureStream)
      throw ncclError(env, ncclInvalidUsage, "a group in a graph has operations of the captured stream only");
  return captureStream;
}

struct Queued {
  ncclResult_t ended;    // result of ncclGroupEnd()
  ncclResult_t queued;   // result of queueing the operations
  std::string sentence;  // error of `queued`
};

Queued queueAll(std::vector<Operation>& operations) {
  Queued result{ncclSuccess, ncclGroupStart(), {}};
  for (Operation& operation : operations) {
    if (result.queued != ncclSuccess) break;
    result.queued = enqueue(operation);
    if (result.queued != ncclSuccess) result.sentence = ncclGetLastError(operation.comm->comm);
  }
  result.ended = ncclGroupEnd();  // required even if an operation has failed
  return result;
}

Napi::Array zeros(Napi::Env env, size_t count) {
  auto array = Napi::Array::New(env, count);
  for (uint32_t i = 0; i < count; ++i) array.Set(i, Napi::Number::New(env, 0));
  return array;
}

}  // namespace

Napi::Value commWatch(const Napi::CallbackInfo& call) {
  const auto comm = openComm(call[0]);
  if (!call[1].IsFunction()) throw wrongArgument(call.Env(), "watcher", "a function");
  const auto settler = Settler::of(call.Env());
  const auto watcher = std::make_shared<Napi::FunctionReference>(Napi::Persistent(call[1].As<Napi::Function>()));
  comm->watcher = settler->onWake([comm, watcher](Napi::Env env) { reportCompletions(env, *comm, *watcher); });
  comm->completions.wake = [settler, number = comm->watcher] { settler->wake(number); };
  return call.Env().Undefined();
}

napi_value operate(napi_env env, napi_callback_info call) {
  napi_value arguments[kArguments];
  size_t count = kArguments;
  napi_get_cb_info(env, call, &count, arguments, nullptr, nullptr);  // Node fills in undefined for missing arguments
  try {
    Operation operation = read(env, [&](size_t i) { return Napi::Value(env, arguments[i]); });
    Comm& comm = *operation.comm;
    check(env, enqueue(operation), comm.comm);
    return Napi::Number::New(env, static_cast<double>(beginTracking(env, comm, ncclSuccess, bytesOf(operation))));
  } catch (const Napi::Error& error) {
    error.ThrowAsJavaScriptException();
    return nullptr;
  }
}

Napi::Value streamOperate(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  Operation operation = readOnStream(env, [&](size_t i) { return call[i]; });
  const auto comm = operation.held;
  const auto stream = operation.stream;
  retain(operation);
  check(env, stream->submit([operation]() mutable { return enqueue(operation); }), comm->comm);
  return env.Undefined();
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
    const auto at = [&](size_t index) { return values.Get(static_cast<uint32_t>(index)); };
    operations.push_back(values.Length() == kStreamArguments ? readOnStream(env, at) : read(env, at));
  }
  DeviceStream* const captureStream = captureStreamOf(env, operations);
  for (const Operation& operation : operations)
    if (operation.stream != nullptr) retain(operation);
  if (captureStream != nullptr) {
    captureStream->submit([operations]() mutable { return queueAll(operations).queued; });
    return zeros(env, operations.size());
  }

  const auto [ended, queued, sentence] = queueAll(operations);
  if (queued != ncclSuccess) throw ncclError(env, queued, sentence);

  // Operations of one communicator end together.
  std::map<Comm*, uint64_t> numbers;
  size_t bytes = 0;
  for (const Operation& operation : operations) {
    if (operation.stream != nullptr) continue;
    numbers[operation.comm] = 0;
    bytes += bytesOf(operation);
  }
  // Polling for the operations of one communicator would delay those of the others.
  if (numbers.size() > 1) bytes = SIZE_MAX;
  for (auto& [comm, number] : numbers) number = beginTracking(env, *comm, ended, bytes);
  if (numbers.empty() && ended != ncclSuccess) throw ncclError(env, ended, ncclGetLastError(nullptr));
  Napi::Array result = zeros(env, operations.size());
  for (uint32_t i = 0; i < operations.size(); ++i)
    if (operations[i].stream == nullptr)
      result.Set(i, Napi::Number::New(env, static_cast<double>(numbers.at(operations[i].comm))));
  return result;
}

}  // namespace ncclrun::binding
