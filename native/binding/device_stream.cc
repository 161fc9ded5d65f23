// Streams of a device for Node, their events and graphs.
#include <algorithm>

#include "binding/arguments.h"
#include "binding/device.h"
#include "binding/error.h"
#include "binding/module.h"

namespace ncclrun::binding {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

// The host device's twin of an end by the driver, which takes no result.
struct End {
  std::shared_ptr<Settler> settler;
  std::shared_ptr<Pending> pending;
  std::shared_ptr<DeviceStream> stream;

  void finish(ncclResult_t result) { settler->end(pending, result); }
};

void endOnHost(void* argument, ncclResult_t result) {
  const std::unique_ptr<End> end(static_cast<End*>(argument));
  if (result != ncclSuccess) end->stream->note(result, ncclGetLastError(nullptr));
  const auto [failure, sentence] = end->stream->takeFailure();
  end->pending->sentence = sentence;
  end->finish(failure);
}

void endOnGpu(void* argument) {
  const std::unique_ptr<End> end(static_cast<End*>(argument));
  end->finish(ncclSuccess);
}

// Whoever interrupted the communicator ended its operations too: to a GPU's stream they ended like others.
void seeIfBroken(const Comm& comm, Pending& pending) {
  if (pending.result != ncclSuccess) return;
  if (comm.state == Comm::State::aborted) {
    pending.result = ncclInvalidUsage;
    pending.sentence = "the communicator was aborted before the operation had ended";
    return;
  }
  if (comm.state != Comm::State::open) return;  // it waited for its operations
  ncclResult_t broken = ncclSuccess;
  ncclCommGetAsyncError(comm.comm, &broken);
  if (broken == ncclSuccess || broken == ncclInProgress) return;
  pending.result = broken;
  pending.sentence = ncclGetLastError(comm.comm);
}

std::shared_ptr<DeviceStream> streamArgument(const Napi::Value& value) {
  auto stream = objectArgument<DeviceStream>(value, "stream");
  useGpu(value.Env(), stream->gpu);
  return stream;
}

// A range of memory that the stream keeps until it has come so far.
char* rangeArgument(const Napi::CallbackInfo& call, size_t first, size_t bytes, DeviceStream& stream) {
  const auto block = objectArgument<DeviceBlock>(call[first], "memory");
  const auto offset = integerArgument<uint64_t>(call[first + 1], "offset");
  if (block->memory == nullptr || offset > block->memory->bytes || bytes > block->memory->bytes - offset)
    throw wrongArgument(call.Env(), "memory", "large enough, or it was freed");
  stream.kept.push_back(block->memory);
  return static_cast<char*>(block->memory->address) + offset;
}

// Made before it is needed: a driver may let whoever pins memory wait for what the GPU does.
void makeStaging(Napi::Env env, const DeviceStream& stream, std::shared_ptr<Staging>& staging) {
  if (stream.gpu < 0 || staging != nullptr) return;
  const auto made = std::make_shared<Staging>();
  check(env, made->allocate(), nullptr);
  staging = made;
}

// Behind the communicators', for whose operations a stream waits.
void destroy(const std::shared_ptr<DeviceStream>& stream) {
  if (stream->gpu < 0) {
    ncclrunStreamDestroy(stream->host);
  } else {
    ncclrunGpuUse(stream->gpu);
    ncclrunGpuStreamSynchronize(stream->cuda);
    ncclrunGpuStreamDestroy(stream->cuda);
  }
}

}  // namespace

Napi::Value streamCreate(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  const auto stream = std::make_shared<DeviceStream>();
  stream->gpu = gpuArgument(call[0]);
  useGpu(env, stream->gpu);
  makeStaging(env, *stream, stream->staging);
  check(env, stream->gpu < 0 ? ncclrunStreamCreate(&stream->host) : ncclrunGpuStreamCreate(&stream->cuda), nullptr);
  const auto settler = Settler::of(env);
  const uint64_t stop = settler->afterEnvironmentEnd([stream] { destroy(stream); });
  const auto finalizer = [settler, stop](Napi::Env, std::shared_ptr<DeviceStream>* held) {
    if (settler->forget(stop)) Settler::inBackground([stream = *held] { destroy(stream); });
    delete held;
  };
  auto handle =
      Napi::External<std::shared_ptr<DeviceStream>>::New(env, new std::shared_ptr<DeviceStream>(stream), finalizer);
  handle.TypeTag(&DeviceStream::kTag);
  return handle;
}

Napi::Value streamCopy(const Napi::CallbackInfo& call) {
  const auto stream = streamArgument(call[0]);
  const auto array = viewArgument(call[3], "array");
  char* const memory = rangeArgument(call, 1, array.size(), *stream);
  const bool toDevice = call[4].ToBoolean();
  check(call.Env(), stream->copy(memory, reinterpret_cast<char*>(array.data()), array.size(), toDevice), nullptr);
  return call.Env().Undefined();
}

Napi::Value streamFill(const Napi::CallbackInfo& call) {
  const auto stream = streamArgument(call[0]);
  const auto bytes = integerArgument<uint64_t>(call[3], "bytes");
  char* const memory = rangeArgument(call, 1, bytes, *stream);
  check(call.Env(), stream->fill(memory, integerArgument<uint8_t>(call[4], "value"), bytes), nullptr);
  return call.Env().Undefined();
}

Napi::Value streamEnded(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  const auto stream = streamArgument(call[0]);
  const auto comm = call[1].IsNull() ? nullptr : objectArgument<Comm>(call[1], "comm");
  const auto pending = std::make_shared<Pending>(env);
  if (comm != nullptr) {
    comm->queued = false;
    ++comm->underWay;
  }
  const auto kept = std::make_shared<Kept>(std::exchange(stream->kept, {}));
  pending->ended = [comm, kept, pending = pending.get()] {
    kept->clear();
    if (comm == nullptr) return;
    --comm->underWay;
    seeIfBroken(*comm, *pending);
  };
  pending->lost = [kept] { Settler::inBackground([kept] { kept->clear(); }); };
  const auto settler = Settler::of(env);
  settler->begin(pending);
  auto end = std::make_unique<End>(End{settler, pending, stream});
  const ncclResult_t queued = stream->gpu < 0 ? ncclrunStreamCallback(stream->host, endOnHost, end.get())
                                              : ncclrunGpuStreamCallback(stream->cuda, endOnGpu, end.get());
  if (queued == ncclSuccess) {
    static_cast<void>(end.release());
  } else {
    pending->sentence = ncclGetLastError(nullptr);
    settler->end(pending, queued);
  }
  return pending->deferred.Promise();
}

Napi::Value streamRecord(const Napi::CallbackInfo& call) {
  const auto stream = streamArgument(call[0]);
  const auto event = std::make_shared<DeviceEvent>();
  event->gpu = stream->gpu;
  ncclResult_t result = ncclSuccess;
  if (stream->gpu < 0) {
    result = stream->submit([stream = stream.get(), event] { return stream->run([event] { event->happen(); }); });
  } else {
    result = ncclrunGpuEventCreate(&event->cuda);
    if (result == ncclSuccess) result = ncclrunGpuEventRecord(event->cuda, stream->cuda);
  }
  check(call.Env(), result, nullptr);
  return wrapObject(call.Env(), event);
}

Napi::Value streamWait(const Napi::CallbackInfo& call) {
  const auto stream = streamArgument(call[0]);
  const auto event = objectArgument<DeviceEvent>(call[1], "event");
  if (event->gpu != stream->gpu)
    throw ncclError(call.Env(), ncclInvalidUsage, "the event is of another device than the stream");
  check(call.Env(),
        stream->gpu < 0
            ? stream->submit([stream = stream.get(), event] { return stream->run([event] { event->wait(); }); })
            : ncclrunGpuEventWait(stream->cuda, event->cuda),
        nullptr);
  return call.Env().Undefined();
}

Napi::Value eventElapsed(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  const auto from = objectArgument<DeviceEvent>(call[0], "from");
  const auto to = objectArgument<DeviceEvent>(call[1], "to");
  if (from->gpu != to->gpu) throw ncclError(env, ncclInvalidUsage, "the two events are of different devices");
  if (from->gpu < 0) {
    const auto begin = from->time();
    const auto end = to->time();
    if (std::min(begin, end).time_since_epoch().count() == 0)
      throw ncclError(env, ncclInvalidUsage, "an event has not happened; wait for its stream first");
    return Napi::Number::New(env, Milliseconds(end - begin).count());
  }
  useGpu(env, from->gpu);
  float milliseconds = 0;
  check(env, ncclrunGpuEventElapsed(from->cuda, to->cuda, &milliseconds), nullptr);
  return Napi::Number::New(env, milliseconds);
}

Napi::Value captureBegin(const Napi::CallbackInfo& call) {
  const auto stream = streamArgument(call[0]);
  makeStaging(call.Env(), *stream, stream->graphStaging);
  if (stream->gpu >= 0) check(call.Env(), ncclrunGpuCaptureBegin(stream->cuda), nullptr);
  stream->capturing = true;
  return call.Env().Undefined();
}

Napi::Value captureEnd(const Napi::CallbackInfo& call) {
  const auto stream = streamArgument(call[0]);
  const auto graph = std::make_shared<DeviceGraph>();
  stream->capturing = false;
  graph->gpu = stream->gpu;
  graph->steps = std::exchange(stream->steps, {});
  graph->kept = std::exchange(stream->kept, {});
  if (stream->graphStaging.use_count() > 1) stream->graphStaging = nullptr;  // the graph has it
  graph->comms = std::exchange(stream->comms, {});
  if (stream->gpu < 0) graph->kept.push_back(stream);
  if (stream->gpu >= 0) check(call.Env(), ncclrunGpuCaptureEnd(stream->cuda, &graph->cuda), nullptr);
  return wrapObject(call.Env(), graph);
}

Napi::Value graphLaunch(const Napi::CallbackInfo& call) {
  const auto graph = objectArgument<DeviceGraph>(call[0], "graph");
  const auto stream = streamArgument(call[1]);
  for (const auto& comm : graph->comms) {
    if (comm->state != Comm::State::open)
      throw ncclError(call.Env(), ncclInvalidUsage, "a communicator of the graph was closed or aborted before");
    comm->queued = true;
  }
  stream->kept.push_back(graph);
  if (graph->gpu >= 0) check(call.Env(), ncclrunGpuGraphLaunch(graph->cuda, stream->cuda), nullptr);
  for (const Step& step : graph->steps) check(call.Env(), step(), nullptr);
  return call.Env().Undefined();
}

}  // namespace ncclrun::binding
