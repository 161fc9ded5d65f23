// The engine for Node: the library, and communicators from joining to closing.
#include "binding/communicator.h"

#include <cstring>
#include <unordered_set>
#include <vector>

#include "binding/arguments.h"
#include "binding/device.h"
#include "binding/error.h"
#include "binding/module.h"

namespace ncclrun::binding {
namespace {

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

// What the handles of this environment, which has a thread of its own, hold.
std::unordered_set<const void*>& handles() {
  thread_local std::unordered_set<const void*> all;
  return all;
}

void forget(Settler& settler, const Comm& comm) {
  settler.forget(comm.stop);
  settler.forget(comm.watcher);
  settler.forget(comm.gone);
}

// What closes it, and may block.
std::function<ncclResult_t()> closing(const std::shared_ptr<Comm>& comm) {
  const bool aborted = comm->state == Comm::State::aborted;
  comm->state = Comm::State::closed;
  const auto closed = std::make_shared<std::promise<void>>();
  comm->closing = closed->get_future().share();
  return [comm, aborted, closed] {
    const ncclResult_t result = leave(*comm, aborted);
    ncclrunStreamDestroy(comm->stream);
    closed->set_value();
    return result;
  };
}

// Nobody can call anything of it any more. One with operations under way ends with its environment.
void collected(const std::shared_ptr<Settler>& settler, const std::shared_ptr<Comm>& comm) {
  const bool used = comm->underWay > 0 || comm->queued || !comm->completions.allEnded();
  if (used || (comm->state != Comm::State::open && comm->state != Comm::State::aborted)) return;
  settler->inBackground([settler, comm, close = closing(comm)] {
    close();
    settler->wake(comm->gone);
  });
}

Napi::Value handleOf(Napi::Env env, const std::shared_ptr<Settler>& settler, const std::shared_ptr<Comm>& comm) {
  comm->stop = settler->onEnvironmentEnd([comm] { comm->stopNow(); });
  comm->gone = settler->onWake([comm, settler = settler.get()](Napi::Env) { forget(*settler, *comm); });
  auto* const held = new std::shared_ptr<Comm>(comm);
  handles().insert(held);
  const auto finalizer = [settler](Napi::Env, std::shared_ptr<Comm>* given) {
    handles().erase(given);
    collected(settler, *given);
    delete given;
  };
  auto handle = Napi::External<std::shared_ptr<Comm>>::New(env, held, finalizer);
  handle.TypeTag(&Comm::kTag);
  return handle;
}

void checkOpen(Napi::Env env, const Comm& comm) {
  if (comm.state == Comm::State::closed) throw ncclError(env, ncclInvalidUsage, "the communicator was closed before");
  if (comm.state == Comm::State::joining || comm.state == Comm::State::waiting)
    throw ncclError(env, ncclInvalidUsage, "the communicator is still being joined");
  if (comm.state == Comm::State::aborted) throw ncclError(env, ncclInvalidUsage, "the communicator was aborted before");
}

// A promise for what `make`, which may block, makes; null where it makes none.
template <typename Make>
Napi::Value promiseOfNew(Napi::Env env, const std::shared_ptr<Pending>& pending, int gpu, Make&& make) {
  const auto settler = Settler::of(env);
  const auto comm = std::make_shared<Comm>();
  comm->gpu = gpu;
  pending->value = [comm, settler](Napi::Env there) -> Napi::Value {
    if (comm->comm == nullptr) return there.Null();
    return handleOf(there, settler, comm);
  };
  pending->lost = [comm] {
    if (comm->comm != nullptr) ncclCommAbort(comm->comm);
  };
  settler->block(pending, [comm, make] {
    if (comm->gpu >= 0) ncclrunGpuUse(comm->gpu);
    ncclResult_t result = make(&comm->comm);
    if (result != ncclSuccess || comm->comm == nullptr) return result;
    int size = 0;
    result = ncclCommCount(comm->comm, &size);
    comm->size = static_cast<size_t>(size);
    if (result == ncclSuccess) result = ncclrunCommLetQueueGrow(comm->comm);  // the event loop must not wait
    return result == ncclSuccess ? ncclrunStreamCreate(&comm->stream) : result;
  });
  return pending->deferred.Promise();
}

}  // namespace

void Comm::stopNow() {
  if (closing.valid()) {
    ncclCommAbort(comm);
    return closing.wait();
  }
  if (state == State::open && underWay == 0 && !queued && completions.allEnded()) {
    ncclCommFinalize(comm);
    ncclCommDestroy(comm);
  } else if (state != State::aborted && state != State::closed) {
    ncclCommAbort(comm);
  }
  ncclrunStreamDestroy(stream);
  state = State::closed;
}

void check(Napi::Env env, ncclResult_t result, ncclComm_t comm) {
  if (result != ncclSuccess) throw ncclError(env, result, ncclGetLastError(comm));
}

std::shared_ptr<Comm> openComm(const Napi::Value& value) {
  auto comm = objectArgument<Comm>(value, "comm");
  checkOpen(value.Env(), *comm);
  return comm;
}

Comm& openOperand(const Napi::Value& value) {
  void* held = nullptr;
  napi_get_value_external(value.Env(), value, &held);
  if (!handles().contains(held)) throw wrongArgument(value.Env(), "comm", Comm::kName);
  Comm& comm = **static_cast<std::shared_ptr<Comm>*>(held);
  checkOpen(value.Env(), comm);
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

  const auto comm = std::make_shared<Comm>();
  comm->gpu = gpuArgument(call[3]);
  useGpu(call.Env(), comm->gpu);
  comm->state = Comm::State::joining;
  comm->size = static_cast<size_t>(size);
  check(call.Env(), ncclrunStreamCreate(&comm->stream), nullptr);
  const ncclResult_t begun = ncclrunCommBegin(&comm->comm, size, id, rank, deviceOf(comm->gpu));
  if (begun != ncclSuccess) ncclrunStreamDestroy(comm->stream);
  check(call.Env(), begun, nullptr);
  return handleOf(call.Env(), Settler::of(call.Env()), comm);
}

Napi::Value commReady(const Napi::CallbackInfo& call) {
  const auto comm = objectArgument<Comm>(call[0], "comm");
  if (comm->state != Comm::State::joining)
    throw ncclError(call.Env(), ncclInvalidUsage, "the communicator was waited for or aborted before");
  comm->state = Comm::State::waiting;
  const auto settler = Settler::of(call.Env());
  const auto pending = std::make_shared<Pending>(call.Env());
  pending->ended = [settler, comm, pending = pending.get()] {
    if (pending->result == ncclSuccess) {
      if (comm->state == Comm::State::waiting) comm->state = Comm::State::open;  // else aborted in this moment
      return;
    }
    comm->state = Comm::State::closed;
    forget(*settler, *comm);
    ncclrunStreamDestroy(comm->stream);
  };
  settler->block(pending, [comm] {
    const ncclResult_t result = ncclrunCommWait(comm->comm);
    return result == ncclSuccess ? ncclrunCommLetQueueGrow(comm->comm) : result;  // the event loop must not wait
  });
  return pending->deferred.Promise();
}

Napi::Value commSplit(const Napi::CallbackInfo& call) {
  const auto parent = openComm(call[0]);
  const auto color = call[1].IsNull() ? NCCL_SPLIT_NOCOLOR : integerArgument<int32_t>(call[1], "color");
  const auto key = integerArgument<int32_t>(call[2], "key");
  return promiseOfNew(call.Env(), pendingOf(call.Env(), parent), parent->gpu, [parent, color, key](ncclComm_t* made) {
    return ncclCommSplit(parent->comm, color, key, made, nullptr);
  });
}

namespace {

Napi::Array nicsOf(Napi::Env env, const Comm& comm, uint32_t host) {
  size_t count = 0;
  check(env, ncclrunCommGetNics(comm.comm, host, nullptr, &count), comm.comm);
  std::vector<ncclrunNic> nics(count);
  check(env, ncclrunCommGetNics(comm.comm, host, nics.data(), &count), comm.comm);
  auto list = Napi::Array::New(env, count);
  for (uint32_t i = 0; i < count; ++i) {
    Napi::Object nic = Napi::Object::New(env);
    nic.Set("name", Napi::String::New(env, nics[i].name));
    nic.Set("address", Napi::String::New(env, nics[i].address));
    nic.Set("port", Napi::Number::New(env, nics[i].port));
    nic.Set("speedMbps", nics[i].speedMbps == 0 ? env.Null() : Napi::Number::New(env, nics[i].speedMbps));
    nic.Set("gpuDirect", Napi::Boolean::New(env, nics[i].gpuDirect != 0));
    list.Set(i, nic);
  }
  return list;
}

}  // namespace

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
    Napi::Object host = Napi::Object::New(env);
    host.Set("name", Napi::String::New(env, name));
    host.Set("nics", nicsOf(env, *comm, i));
    hosts.Set(i, host);
  }
  object.Set("hosts", hosts);
  return object;
}

Napi::Value nodeBarrier(const Napi::CallbackInfo& call) {
  const auto comm = openComm(call[0]);
  const auto pending = pendingOf(call.Env(), comm);
  Settler::of(call.Env())->block(pending, [comm] { return ncclrunNodeBarrier(comm->comm); });
  return pending->deferred.Promise();
}

Napi::Value abort(const Napi::CallbackInfo& call) {
  const auto comm = objectArgument<Comm>(call[0], "comm");
  if (comm->state != Comm::State::joining && comm->state != Comm::State::waiting) checkOpen(call.Env(), *comm);
  const std::string reason = stringArgument(call[1], "reason");
  comm->state = Comm::State::aborted;
  check(call.Env(), ncclrunCommAbort(comm->comm, reason.c_str()), comm->comm);
  return call.Env().Undefined();
}

Napi::Value commClose(const Napi::CallbackInfo& call) {
  const auto comm = objectArgument<Comm>(call[0], "comm");
  if (comm->state != Comm::State::aborted) openComm(call[0]);
  const auto settler = Settler::of(call.Env());
  const auto pending = std::make_shared<Pending>(call.Env());
  pending->ended = [settler, comm] { forget(*settler, *comm); };
  settler->block(pending, closing(comm));
  return pending->deferred.Promise();
}

}  // namespace ncclrun::binding
