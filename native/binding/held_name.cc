// Names in the abstract namespace of Unix sockets as locks: the kernel gives a name to one process, names that process
// to everybody who connects, and frees the name when the process ends. No file, so nothing has permissions, can be
// replaced, or stays behind.
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/descriptor.h"
#include "binding/arguments.h"
#include "binding/error.h"
#include "binding/handle.h"
#include "binding/module.h"

namespace ncclrun::binding {
namespace {

struct Address {
  sockaddr_un bytes{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

Address addressArgument(const Napi::Value& value) {
  const std::string name = stringArgument(value, "name");
  Address address;
  if (name.empty() || name.size() >= sizeof address.bytes.sun_path)
    throw wrongArgument(value.Env(), "name", "a name of 1 to 107 bytes");
  address.bytes.sun_family = AF_UNIX;
  std::memcpy(address.bytes.sun_path + 1, name.data(), name.size());  // after a zero byte: the abstract namespace
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Descriptor newSocket(Napi::Env env) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) throw systemError(env, errno, "cannot make a Unix socket");
  return socket;
}

}  // namespace

// Nobody accepts: who connects wants the credentials of the listener, which the kernel has already. Connections stay in
// the queue, whose length is the system's maximum.
Napi::Value nameHold(const Napi::CallbackInfo& call) {
  const Address address = addressArgument(call[0]);
  auto handle = std::make_shared<Handle>();
  handle->descriptor = newSocket(call.Env());
  if (bind(handle->descriptor.get(), address.get(), address.size) != 0) {
    if (errno == EADDRINUSE) return call.Env().Null();
    throw systemError(call.Env(), errno, "cannot hold a name");
  }
  if (listen(handle->descriptor.get(), SOMAXCONN) != 0) throw systemError(call.Env(), errno, "cannot hold a name");
  return wrapObject(call.Env(), std::move(handle));
}

Napi::Value nameHolder(const Napi::CallbackInfo& call) {
  const Address address = addressArgument(call[0]);
  const Descriptor socket = newSocket(call.Env());
  ucred holder{};
  socklen_t size = sizeof holder;
  if (connect(socket.get(), address.get(), address.size) != 0 ||
      getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &holder, &size) != 0)
    return call.Env().Null();
  auto result = Napi::Object::New(call.Env());
  result.Set("pid", Napi::Number::New(call.Env(), holder.pid));
  result.Set("uid", Napi::Number::New(call.Env(), holder.uid));
  return result;
}

}  // namespace ncclrun::binding
