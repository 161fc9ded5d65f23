#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "binding/arguments.h"
#include "binding/error.h"
#include "binding/module.h"
#include "core/descriptor.h"

namespace ncclrun::binding {

Napi::Value setChildSubreaper(const Napi::CallbackInfo& call) {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
    throw systemError(call.Env(), errno, "cannot become the reaper of orphans (PR_SET_CHILD_SUBREAPER)");
  }
  return call.Env().Undefined();
}

namespace {

// A listening socket on a port that the system chooses, on every address of IPv4; `port` in host order.
Descriptor listenAnywhere(uint16_t& port) {
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (!listener.valid() || bind(listener.get(), generic, size) < 0 || listen(listener.get(), 1) < 0 ||
      getsockname(listener.get(), generic, &size) < 0) {
    return {};
  }
  port = ntohs(address.sin_port);
  return listener;
}

}  // namespace

Napi::Value freePorts(const Napi::CallbackInfo& call) {
  const auto count = integerArgument<uint16_t>(call[0], "count");
  std::vector<Descriptor> held;  // all at once: so they differ
  auto ports = Napi::Array::New(call.Env(), count);
  for (uint32_t i = 0; i < count; ++i) {
    uint16_t port = 0;
    held.push_back(listenAnywhere(port));
    if (!held.back().valid()) throw systemError(call.Env(), errno, "cannot find a free TCP port");
    ports.Set(i, Napi::Number::New(call.Env(), port));
  }
  return ports;
}

}  // namespace ncclrun::binding
