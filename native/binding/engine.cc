// The engine for Node: every operation goes to the communicator's own stream and comes back as a promise.
#include <cstring>
#include <future>
#include <memory>
#include <vector>

#include "binding/arguments.h"
#include "binding/error.h"
#include "binding/module.h"
#include "binding/settler.h"
#include "ncclrun.h"

namespace ncclrun::binding {
namespace {

// CommHandle of worker/engine/native.ts.
//
//   open ──commClose──▶ closed (closing until the future is there)
//     └──abort──▶ aborted ──commClose──▶ closed
struct Comm {
  static constexpr napi_type_tag kTag = {0x6e63636c72756e03, 0x436f6d6d00000001};
  static constexpr const char* kName = "a communicator";
  enum class State { open, aborted, closed };

  ncclComm_t comm = nullptr;
  ncclrunStream_t stream = nullptr;
  State state = State::open;
  size_t underWay = 0;  // promises
  uint64_t stop = 0;    // Settler::forget

  std::shared_future<void> closing;

  // The environment goes: ends what is queued. Afterwards the engine touches no buffer of ours.
  void stopNow() {
    if (closing.valid()) {
      ncclCommAbort(comm);
      return closing.wait();
    }
    if (state == State::open && underWay == 0) {
      ncclCommFinalize(comm);
      ncclCommDestroy(comm);
    } else if (state == State::open) {
      ncclCommAbort(comm);
    }
    ncclrunStreamDestroy(stream);
    state = State::closed;
  }
};

void check(Napi::Env env, ncclResult_t result, ncclComm_t comm) {
  if (result != ncclSuccess) throw ncclError(env, result, ncclGetLastError(comm));
}

std::shared_ptr<Comm> openComm(const Napi::Value& value) {
  auto comm = objectArgument<Comm>(value, "comm");
  if (comm->state == Comm::State::closed)
    throw ncclError(value.Env(), ncclInvalidUsage, "the communicator was closed before");
  if (comm->state == Comm::State::aborted)
    throw ncclError(value.Env(), ncclInvalidUsage, "the communicator was aborted before");
  return comm;
}

std::shared_ptr<Pending> pendingOf(Napi::Env env, const std::shared_ptr<Comm>& comm) {
  auto pending = std::make_shared<Pending>(env);
  ++comm->underWay;
  pending->ended = [comm, pending = pending.get()] {
    --comm->underWay;
    if (pending->result != ncclSuccess && pending->sentence.empty()) pending->sentence = ncclGetLastError(comm->comm);
  };
  return pending;
}

// What an engine thread gets back from us when everything queued so far has ended.
struct Ended {
  std::shared_ptr<Settler> settler;
  std::shared_ptr<Pending> pending;

  static void callback(void* argument, ncclResult_t result) {
    const std::unique_ptr<Ended> self(static_cast<Ended*>(argument));
    self->settler->end(self->pending, result);
  }
};

// `queued` is the result of queueing the operation. A promise for its end; `buffers` stay where they are until then.
Napi::Value promiseOf(Napi::Env env, const std::shared_ptr<Comm>& comm, ncclResult_t queued,
                      const std::vector<Napi::Value>& buffers) {
  check(env, queued, comm->comm);
  const auto settler = Settler::of(env);
  const auto pending = pendingOf(env, comm);
  for (const Napi::Value& buffer : buffers) pending->pinned.push_back(Napi::Persistent(buffer.As<Napi::Object>()));
  settler->begin(pending);
  auto ended = std::make_unique<Ended>(Ended{settler, pending});
  const ncclResult_t result = ncclrunStreamCallback(comm->stream, Ended::callback, ended.get());
  if (result == ncclSuccess) {
    ended.release();  // the callback's now
  } else {
    settler->end(pending, result);
  }
  return pending->deferred.Promise();
}

size_t elementBytes(Napi::Env env, ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    case ncclNumTypes:
      break;
  }
  throw wrongArgument(env, "type", "an ncclDataType_t");
}

// The memory of a view that must hold `count` elements.
void* buffer(const Napi::Value& value, const char* name, size_t count, ncclDataType_t type) {
  const auto bytes = viewArgument(value, name);
  if (count > bytes.size() / elementBytes(value.Env(), type))
    throw wrongArgument(value.Env(), name, "large enough for `count` elements");
  return bytes.data();
}

// What broke the communicator before was an operation's to tell; only what breaks now is an error of leaving it.
ncclResult_t leave(const Comm& comm, bool aborted) {
  if (aborted) return ncclSuccess;
  ncclResult_t before = ncclSuccess;
  ncclCommGetAsyncError(comm.comm, &before);
  const ncclResult_t result = ncclCommFinalize(comm.comm);
  ncclCommDestroy(comm.comm);
  return before == ncclSuccess ? result : ncclSuccess;
}

Napi::Value bytesOf(Napi::Env env, const ncclUniqueId& id) {
  auto bytes = Napi::Uint8Array::New(env, sizeof id.internal);
  memcpy(bytes.Data(), id.internal, sizeof id.internal);
  return bytes;
}

}  // namespace

Napi::Value version(const Napi::CallbackInfo& call) { return Napi::String::New(call.Env(), ncclrunVersion()); }

Napi::Value getUniqueId(const Napi::CallbackInfo& call) {
  ncclUniqueId id;
  check(call.Env(), ncclGetUniqueId(&id), nullptr);
  return bytesOf(call.Env(), id);
}

Napi::Value getJob(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  ncclUniqueId id;
  int size = 0;
  int rank = 0;
  check(env, ncclrunGetJob(&id, &size, &rank), nullptr);
  Napi::Object job = Napi::Object::New(env);
  job.Set("uniqueId", bytesOf(env, id));
  job.Set("size", Napi::Number::New(env, size));
  job.Set("rank", Napi::Number::New(env, rank));
  return job;
}

Napi::Value commInit(const Napi::CallbackInfo& call) {
  const auto bytes = viewArgument(call[0], "uniqueId");
  const auto size = integerArgument<int32_t>(call[1], "size");
  const auto rank = integerArgument<int32_t>(call[2], "rank");
  ncclUniqueId id;
  if (bytes.size() != sizeof id.internal) throw wrongArgument(call.Env(), "uniqueId", "128 bytes long");
  memcpy(id.internal, bytes.data(), sizeof id.internal);

  const auto settler = Settler::of(call.Env());
  const auto comm = std::make_shared<Comm>();
  const auto pending = std::make_shared<Pending>(call.Env());
  pending->value = [comm, settler](Napi::Env env) {
    comm->stop = settler->onEnvironmentEnd([comm] { comm->stopNow(); });
    return wrapObject(env, comm);
  };
  pending->lost = [comm] {
    if (comm->comm != nullptr) ncclCommAbort(comm->comm);
  };
  settler->block(pending, [comm, size, id, rank] {
    const ncclResult_t result = ncclCommInitRank(&comm->comm, size, id, rank);
    return result == ncclSuccess ? ncclrunStreamCreate(&comm->stream) : result;
  });
  return pending->deferred.Promise();
}

Napi::Value commInfo(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  const auto comm = openComm(call[0]);
  ncclrunCommInfo info = {};
  check(env, ncclrunCommGetInfo(comm->comm, &info), comm->comm);
  Napi::Object object = Napi::Object::New(env);
  object.Set("rank", Napi::Number::New(env, info.rank));
  object.Set("size", Napi::Number::New(env, info.size));
  object.Set("localRank", Napi::Number::New(env, info.localRank));
  object.Set("localSize", Napi::Number::New(env, info.localSize));
  object.Set("host", Napi::Number::New(env, info.host));
  auto hosts = Napi::Array::New(env, info.hosts);
  for (uint32_t i = 0; i < info.hosts; ++i) {
    const char* name = nullptr;
    check(env, ncclrunCommHostName(comm->comm, i, &name), comm->comm);
    hosts.Set(i, Napi::String::New(env, name));
  }
  object.Set("hosts", hosts);
  return object;
}

Napi::Value allReduce(const Napi::CallbackInfo& call) {
  const auto comm = openComm(call[0]);
  const auto count = integerArgument<uint64_t>(call[3], "count");
  const auto type = static_cast<ncclDataType_t>(integerArgument<uint32_t>(call[4], "type"));
  const auto op = static_cast<ncclRedOp_t>(integerArgument<uint32_t>(call[5], "operator"));
  const void* send = buffer(call[1], "send", count, type);
  void* receive = buffer(call[2], "receive", count, type);
  const auto queued =
      ncclAllReduce(send, receive, count, type, op, comm->comm, reinterpret_cast<cudaStream_t>(comm->stream));
  return promiseOf(call.Env(), comm, queued, {call[1], call[2]});
}

Napi::Value exchange(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  const auto comm = openComm(call[0]);
  if (!call[1].IsArray()) throw wrongArgument(env, "transfers", "an array");
  const auto transfers = call[1].As<Napi::Array>();

  struct Transfer {
    bool sends;
    void* memory;
    size_t count;
    ncclDataType_t type;
    int peer;
  };
  std::vector<Transfer> all;
  std::vector<Napi::Value> buffers;
  for (uint32_t i = 0; i < transfers.Length(); ++i) {
    const auto transfer = transfers.Get(i).As<Napi::Object>();
    const auto count = integerArgument<uint64_t>(transfer.Get("count"), "count");
    const auto type = static_cast<ncclDataType_t>(integerArgument<uint32_t>(transfer.Get("type"), "type"));
    buffers.push_back(transfer.Get("buffer"));
    all.push_back({transfer.Get("sends").ToBoolean().Value(), buffer(buffers.back(), "buffer", count, type), count,
                   type, integerArgument<int32_t>(transfer.Get("peer"), "peer")});
  }

  const auto stream = reinterpret_cast<cudaStream_t>(comm->stream);
  ncclResult_t queued = ncclGroupStart();
  std::string sentence;
  for (const Transfer& transfer : all) {
    if (queued != ncclSuccess) break;
    queued = transfer.sends
                 ? ncclSend(transfer.memory, transfer.count, transfer.type, transfer.peer, comm->comm, stream)
                 : ncclRecv(transfer.memory, transfer.count, transfer.type, transfer.peer, comm->comm, stream);
    if (queued != ncclSuccess) sentence = ncclGetLastError(comm->comm);
  }
  const ncclResult_t ended = ncclGroupEnd();  // ends the group whatever happened in it
  if (!sentence.empty()) throw ncclError(env, queued, sentence);
  return promiseOf(env, comm, queued != ncclSuccess ? queued : ended, buffers);
}

Napi::Value barrier(const Napi::CallbackInfo& call) {
  const auto comm = openComm(call[0]);
  return promiseOf(call.Env(), comm, ncclrunBarrier(comm->comm, comm->stream), {});
}

Napi::Value nodeBarrier(const Napi::CallbackInfo& call) {
  const auto comm = openComm(call[0]);
  const auto pending = pendingOf(call.Env(), comm);
  Settler::of(call.Env())->block(pending, [comm] { return ncclrunNodeBarrier(comm->comm); });
  return pending->deferred.Promise();
}

Napi::Value abort(const Napi::CallbackInfo& call) {
  const auto comm = openComm(call[0]);
  const std::string reason = stringArgument(call[1], "reason");
  comm->state = Comm::State::aborted;
  check(call.Env(), ncclrunCommAbort(comm->comm, reason.c_str()), comm->comm);
  return call.Env().Undefined();
}

Napi::Value commClose(const Napi::CallbackInfo& call) {
  const auto comm = objectArgument<Comm>(call[0], "comm");
  const bool aborted = comm->state == Comm::State::aborted;
  if (!aborted) openComm(call[0]);
  comm->state = Comm::State::closed;
  const auto closed = std::make_shared<std::promise<void>>();
  comm->closing = closed->get_future().share();
  const auto settler = Settler::of(call.Env());
  const auto pending = std::make_shared<Pending>(call.Env());
  pending->ended = [settler, comm] { settler->forget(comm->stop); };
  settler->block(pending, [comm, aborted, closed] {
    const ncclResult_t result = leave(*comm, aborted);
    ncclrunStreamDestroy(comm->stream);
    closed->set_value();
    return result;
  });
  return pending->deferred.Promise();
}

}  // namespace ncclrun::binding
