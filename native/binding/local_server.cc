// LocalServer of worker/engine/native.ts: a server thread's events become calls of a function on the event loop.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "binding/arguments.h"
#include "binding/child_process.h"
#include "binding/error.h"
#include "binding/handle.h"
#include "binding/module.h"
#include "binding/server_thread.h"

namespace ncclrun::binding {
namespace {

// Time budget of one event-loop tick: signals, timers and other connections must run too.
constexpr std::chrono::milliseconds kTickBudget{10};
// An event that took less may be followed by more in the same tick.
constexpr std::chrono::milliseconds kShort{1};

class LocalServer;
void deliver(Napi::Env env, Napi::Function onEvent, std::shared_ptr<LocalServer>* server, void*);
using Bridge = Napi::TypedThreadSafeFunction<std::shared_ptr<LocalServer>, void, deliver>;

// Open until closed, by localServerClose or with the environment (the end of the process or of a worker thread).
class LocalServer {
 public:
  static constexpr napi_type_tag kTag = {0x6e63636c72756e02, 0x5365727665720001};
  static constexpr const char* kName = "a local server";

  explicit LocalServer(size_t maxPayloadBytes)
      : events_([this] { bridge_.NonBlockingCall(); }), thread_(maxPayloadBytes, events_) {}

  // 0 or errno, as `start` gives it. `self` keeps the server alive as long as the event loop may be called.
  // While it is open, `keepsAlive` keeps the event loop, and with it the process, running.
  static int open(Napi::Env env, const std::shared_ptr<LocalServer>& self, Napi::Function onEvent, bool keepsAlive,
                  const std::function<int(ServerThread&)>& start) {
    self->bridge_ = Bridge::New(env, onEvent, "ncclrun local server", 0, 1, new std::shared_ptr<LocalServer>(self),
                                [](Napi::Env, void*, std::shared_ptr<LocalServer>* held) { delete held; });
    if (!keepsAlive) self->bridge_.Unref(env);
    // Hooks run in reverse order: this one before the bridge goes.
    napi_add_env_cleanup_hook(env, closeWithEnvironment, self.get());
    self->env_ = env;
    self->open_ = true;
    allOpen().insert(self.get());
    const int error = start(self->thread_);
    if (error != 0) self->close();
    return error;
  }

  void close() {
    if (!open_) return;
    open_ = false;
    allOpen().erase(this);
    napi_remove_env_cleanup_hook(env_, closeWithEnvironment, this);
    thread_.stop();
    bridge_.Release();
  }

  // Those of this thread's environment: there is one per thread.
  static void closeAll() {
    while (!allOpen().empty()) (*allOpen().begin())->close();
  }

  bool isOpen() const { return open_; }
  ServerThread& thread() { return thread_; }
  bool takeEvent(ServerEvent& event) {
    bool resume = false;
    const bool taken = events_.take(event, resume);
    if (resume) thread_.resume();
    return taken;
  }
  bool rest() { return events_.rest(); }

 private:
  static std::set<LocalServer*>& allOpen() {
    static thread_local std::set<LocalServer*> servers;
    return servers;
  }
  static void closeWithEnvironment(void* server) { static_cast<LocalServer*>(server)->close(); }

  Bridge bridge_;
  ServerEvents events_;
  ServerThread thread_;
  napi_env env_ = nullptr;
  bool open_ = false;
};

const char* typeName(ServerEvent::Type type) {
  switch (type) {
    case ServerEvent::Type::connected:
      return "connected";
    case ServerEvent::Type::refused:
      return "refused";
    case ServerEvent::Type::frame:
      return "frame";
    case ServerEvent::Type::died:
      return "died";
    case ServerEvent::Type::closed:
      return "closed";
    case ServerEvent::Type::caughtUp:
      return "caughtUp";
  }
  return "";
}

Napi::Object toObject(Napi::Env env, const ServerEvent& event) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("type", typeName(event.type));
  object.Set("connection", Napi::Number::New(env, event.connection));
  if (event.type == ServerEvent::Type::connected) object.Set("pid", Napi::Number::New(env, event.pid));
  if (event.type == ServerEvent::Type::died) {
    object.Set("waitStatus", event.waitStatus < 0 ? env.Null() : Napi::Number::New(env, event.waitStatus));
    object.Set("stderr", event.text);
  }
  if (event.type == ServerEvent::Type::closed || event.type == ServerEvent::Type::refused) {
    object.Set("reason", event.text);
  }
  if (event.type == ServerEvent::Type::frame) {
    object.Set("kind", Napi::Number::New(env, event.header.kind));
    object.Set("flags", Napi::Number::New(env, event.header.flags));
    object.Set("subject", Napi::Number::New(env, event.header.subject));
    object.Set("request", Napi::Number::New(env, event.header.request));
    // A Buffer's memory is not zeroed first.
    object.Set("payload", Napi::Buffer<uint8_t>::Copy(env, event.payload.data(), event.payload.size()));
  }
  return object;
}

void deliverSome(Napi::Env env, Napi::Function onEvent, const std::shared_ptr<LocalServer>& server);

// In the next tick of the event loop.
void deliverLater(Napi::Env env, Napi::Function onEvent, const std::shared_ptr<LocalServer>& server) {
  auto again = Napi::Function::New(
      env, [server](const Napi::CallbackInfo& call) { deliverSome(call.Env(), call[0].As<Napi::Function>(), server); });
  env.Global().Get("setImmediate").As<Napi::Function>().Call({again, onEvent});
}

// What the function throws goes the way of every exception that nobody catches.
void deliverSome(Napi::Env env, Napi::Function onEvent, const std::shared_ptr<LocalServer>& server) {
  const auto begun = std::chrono::steady_clock::now();
  auto took = begun - begun;
  ServerEvent event;
  while (took < kTickBudget && server->isOpen() && server->takeEvent(event)) {
    const Napi::HandleScope scope(env);
    try {
      onEvent.Call({toObject(env, event)});
    } catch (const Napi::Error& error) {
      napi_fatal_exception(env, error.Value());
    }
    took = std::chrono::steady_clock::now() - begun;
  }
  // Node calls us again at once, without a tick of the event loop, for a wake-up that comes meanwhile.
  if (server->isOpen() && (took >= kShort || !server->rest())) deliverLater(env, onEvent, server);
}

void deliver(Napi::Env env, Napi::Function onEvent, std::shared_ptr<LocalServer>* server, void*) {
  if (env == nullptr) return;
  deliverSome(env, onEvent, std::shared_ptr<LocalServer>(*server));
}

LocalServer& openServer(const Napi::Value& value, std::shared_ptr<LocalServer>& held) {
  held = objectArgument<LocalServer>(value, "server");
  if (!held->isOpen()) throw systemError(value.Env(), EBADF, "the local server was closed before");
  return *held;
}

Napi::Value openNew(Napi::Env env, uint32_t maxPayloadBytes, const Napi::Value& onEvent, bool keepsAlive,
                    const std::string& problem, const std::function<int(ServerThread&)>& start) {
  if (!onEvent.IsFunction()) throw wrongArgument(env, "onEvent", "a function");
  auto server = std::make_shared<LocalServer>(maxPayloadBytes);
  const int error = LocalServer::open(env, server, onEvent.As<Napi::Function>(), keepsAlive, start);
  if (error != 0) throw systemError(env, error, problem);
  return wrapObject(env, std::move(server));
}

}  // namespace

Napi::Value localServerOpen(const Napi::CallbackInfo& call) {
  const std::string path = stringArgument(call[0], "path");
  const auto maxPayloadBytes = integerArgument<uint32_t>(call[1], "maxPayloadBytes");
  return openNew(call.Env(), maxPayloadBytes, call[2], false, "cannot listen on " + path,
                 [&path](ServerThread& thread) { return thread.listen(path); });
}

Napi::Value localServerAdopt(const Napi::CallbackInfo& call) {
  const auto descriptor = integerArgument<int32_t>(call[0], "descriptor");
  const auto maxPayloadBytes = integerArgument<uint32_t>(call[1], "maxPayloadBytes");
  return openNew(call.Env(), maxPayloadBytes, call[2], true,
                 "cannot listen on descriptor " + std::to_string(descriptor),
                 [descriptor](ServerThread& thread) { return thread.listen(Descriptor(descriptor)); });
}

Napi::Value childStart(const Napi::CallbackInfo& call) {
  const std::vector<std::string> words = wordsArgument(call[0], "words");
  return openNew(call.Env(), kMaxPayloadBytes, call[1], true, "cannot start " + words.front(),
                 [&](ServerThread& thread) {
                   ChildProcess child;
                   const int error = startChild(words, child);
                   return error != 0 ? error : thread.serveChild(std::move(child));
                 });
}

Napi::Value toolStart(const Napi::CallbackInfo& call) {
  const std::vector<std::string> words = wordsArgument(call[0], "words");
  const std::vector<std::string> changes = stringsArgument(call[1], "changes");
  return openNew(call.Env(), kMaxPayloadBytes, call[2], true, "cannot start " + words.front(),
                 [&](ServerThread& thread) {
                   ChildProcess child;
                   const int error = startTool(words, changes, child);
                   return error != 0 ? error : thread.serveChild(std::move(child));
                 });
}

Napi::Value localServerWrite(const Napi::CallbackInfo& call) {
  std::shared_ptr<LocalServer> held;
  LocalServer& server = openServer(call[0], held);
  const auto bytes = viewArgument(call[2], "bytes");
  server.thread().send(integerArgument<uint32_t>(call[1], "connection"),
                       {.bytes = {bytes.begin(), bytes.end()}, .descriptors = {}});
  return call.Env().Undefined();
}

Napi::Value streamsServe(const Napi::CallbackInfo& call) {
  Descriptor input(fcntl(integerArgument<int32_t>(call[0], "input"), F_DUPFD_CLOEXEC, 3));
  Descriptor output(fcntl(integerArgument<int32_t>(call[1], "output"), F_DUPFD_CLOEXEC, 3));
  return openNew(call.Env(), kMaxPayloadBytes, call[2], true, "cannot serve the descriptors",
                 [&](ServerThread& thread) { return thread.serveStreams(std::move(input), std::move(output)); });
}

Napi::Value childKill(const Napi::CallbackInfo& call) {
  std::shared_ptr<LocalServer> held;
  openServer(call[0], held).thread().killChild(call[1].ToBoolean());
  return call.Env().Undefined();
}

Napi::Value childStopped(const Napi::CallbackInfo& call) {
  std::shared_ptr<LocalServer> held;
  return Napi::Number::New(call.Env(), openServer(call[0], held).thread().stoppedChild());
}

Napi::Value localServerSend(const Napi::CallbackInfo& call) {
  std::shared_ptr<LocalServer> held;
  LocalServer& server = openServer(call[0], held);
  const auto connection = integerArgument<uint32_t>(call[1], "connection");
  const auto payload = viewArgument(call[6], "payload");
  if (payload.size() > kMaxPayloadBytes) throw wrongArgument(call.Env(), "payload", "short enough for a frame");
  const FrameHeader header = {.payloadBytes = static_cast<uint32_t>(payload.size()),
                              .version = kFrameVersion,
                              .kind = integerArgument<uint8_t>(call[2], "kind"),
                              .flags = integerArgument<uint16_t>(call[3], "flags"),
                              .subject = integerArgument<uint32_t>(call[4], "subject"),
                              .request = integerArgument<uint32_t>(call[5], "request")};
  OutgoingFrame frame;
  const auto* head = reinterpret_cast<const uint8_t*>(&header);
  frame.bytes.reserve(sizeof header + payload.size());
  frame.bytes.insert(frame.bytes.end(), head, head + sizeof header);
  frame.bytes.insert(frame.bytes.end(), payload.begin(), payload.end());

  if (!call[7].IsArray()) throw wrongArgument(call.Env(), "handles", "an array of native handles");
  const auto handles = call[7].As<Napi::Array>();
  if (handles.Length() > kMaxDescriptors) throw wrongArgument(call.Env(), "handles", "short enough for a frame");
  for (uint32_t i = 0; i < handles.Length(); ++i) {
    const auto handle = handleArgument(handles.Get(i), "handle");
    Descriptor copy(
        fcntl(handle->descriptor.get(), F_DUPFD_CLOEXEC, 0));  // ours until sent, whatever becomes of the handle
    if (!copy.valid()) throw systemError(call.Env(), errno, "cannot duplicate a descriptor to send it");
    frame.descriptors.push_back(std::move(copy));
  }
  server.thread().send(connection, std::move(frame));
  return call.Env().Undefined();
}

Napi::Value localServerDisconnect(const Napi::CallbackInfo& call) {
  std::shared_ptr<LocalServer> held;
  openServer(call[0], held).thread().disconnect(integerArgument<uint32_t>(call[1], "connection"));
  return call.Env().Undefined();
}

Napi::Value localServerCatchUp(const Napi::CallbackInfo& call) {
  std::shared_ptr<LocalServer> held;
  openServer(call[0], held).thread().catchUp();
  return call.Env().Undefined();
}

Napi::Value localServerClose(const Napi::CallbackInfo& call) {
  std::shared_ptr<LocalServer> held;
  openServer(call[0], held).close();
  return call.Env().Undefined();
}

Napi::Value exitNow(const Napi::CallbackInfo& call) {
  const auto status = integerArgument<uint8_t>(call[0], "status");
  LocalServer::closeAll();  // what they still have to send leaves first
  _exit(status);
}

}  // namespace ncclrun::binding
