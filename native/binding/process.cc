#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/descriptor.h"
#include "base/limits.h"
#include "base/port_range.h"
#include "binding/arguments.h"
#include "binding/child_process.h"
#include "binding/error.h"
#include "binding/module.h"

namespace ncclrun::binding {

Napi::Value setChildSubreaper(const Napi::CallbackInfo& call) {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
    throw systemError(call.Env(), errno, "cannot become the reaper of orphans (PR_SET_CHILD_SUBREAPER)");
  }
  return call.Env().Undefined();
}

// By the system calls themselves: the C library's functions for timers have another version in older systems.
Napi::Value endAfter(const Napi::CallbackInfo& call) {
  const auto milliseconds = integerArgument<uint32_t>(call[0], "milliseconds");
  static const auto timer = [] {
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    int id = -1;
    return syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) == 0 ? id : -1;
  }();
  // Where the system refuses timers, a stopped process stays.
  itimerspec time = {};
  time.it_value.tv_sec = milliseconds / 1000;
  time.it_value.tv_nsec = long(milliseconds % 1000) * 1'000'000;
  if (timer >= 0) syscall(SYS_timer_settime, timer, 0, &time, nullptr);
  return call.Env().Undefined();
}

namespace {

// A listening socket on every address of IPv4; `port` in host order. Not valid: `error` says why.
Descriptor listenAnywhere(PortRange range, uint32_t start, uint16_t& port, int& error) {
  sockaddr_storage address = {};
  address.ss_family = AF_INET;
  socklen_t size = sizeof(sockaddr_in);
  Descriptor listener = listenWithin(address, size, SOCK_CLOEXEC, 1, range, start, 0, error);
  if (!listener.valid()) return listener;
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) < 0) {
    error = errno;
    return {};
  }
  port = portOf(address);
  return listener;
}

}  // namespace

Napi::Value freePorts(const Napi::CallbackInfo& call) {
  const auto count = integerArgument<uint16_t>(call[0], "count");
  const PortRange range = {integerArgument<uint16_t>(call[1], "first"), integerArgument<uint16_t>(call[2], "last")};
  const std::string searched =
      range.isSystems() ? "cannot find a free TCP port (" + portRange() + ")"
                        : "no port of " + std::to_string(range.first) + "-" + std::to_string(range.last) +
                              " (--port-range) is free; widen the range, or end what listens there (ss -ltnp shows it)";
  std::vector<Descriptor> held;  // all at once: so they differ
  auto ports = Napi::Array::New(call.Env(), count);
  for (uint32_t i = 0; i < count; ++i) {
    uint16_t port = 0;
    int error = 0;
    held.push_back(listenAnywhere(range, uint32_t(getpid()), port, error));
    if (!held.back().valid()) throw systemError(call.Env(), error, searched);
    ports.Set(i, Napi::Number::New(call.Env(), port));
  }
  return ports;
}

Napi::Value tcpUserTimeout(const Napi::CallbackInfo& call) {
  const auto milliseconds = integerArgument<unsigned>(call[1], "milliseconds");
  setsockopt(integerArgument<int>(call[0], "descriptor"), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds,
             sizeof milliseconds);
  return call.Env().Undefined();
}

Napi::Value tcpEnd(const Napi::CallbackInfo& call) {
  const auto descriptor = integerArgument<int>(call[0], "descriptor");
  shutdown(descriptor, SHUT_WR);
  char dropped[4096];
  while (recv(descriptor, dropped, sizeof dropped, MSG_DONTWAIT) > 0) continue;
  return call.Env().Undefined();
}

Napi::Value reapChild(const Napi::CallbackInfo& call) {
  waitpid(integerArgument<pid_t>(call[0], "pid"), nullptr, WNOHANG);
  return call.Env().Undefined();
}

Napi::Value blockSigusr1(const Napi::CallbackInfo& call) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(call[0].ToBoolean() ? SIG_BLOCK : SIG_UNBLOCK, &signals, nullptr);
  return call.Env().Undefined();
}

// Node can neither open a file for reads that do not wait nor seek in one.
Napi::Value kernelLogOpen(const Napi::CallbackInfo& call) {
  Descriptor log(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat kind = {};
  if (log.valid() && fstat(log.get(), &kind) == 0 && kind.st_rdev != makedev(1, 11)) {
    log.reset();
    errno = ENODEV;  // some containers put another device there
  }
  if (!log.valid() || lseek(log.get(), 0, SEEK_END) < 0)
    throw systemError(call.Env(), errno, "cannot read the kernel's log (/dev/kmsg)");
  return Napi::Number::New(call.Env(), log.release());
}

namespace {

// On a thread of Node's pool, as short as the tool is.
class ToolRun : public Napi::AsyncWorker {
 public:
  ToolRun(Napi::Env env, std::vector<std::string> words)
      : AsyncWorker(env), deferred_(Napi::Promise::Deferred::New(env)), words_(std::move(words)) {}
  Napi::Value promise() const { return deferred_.Promise(); }

 protected:
  void Execute() override { error_ = runTool(words_, output_, waitStatus_); }
  void OnOK() override {
    if (error_ != 0) return deferred_.Reject(systemError(Env(), error_, "cannot start " + words_.front()).Value());
    auto result = Napi::Object::New(Env());
    result.Set("waitStatus", Napi::Number::New(Env(), waitStatus_));
    result.Set("output", output_);
    deferred_.Resolve(result);
  }

 private:
  Napi::Promise::Deferred deferred_;
  const std::vector<std::string> words_;
  std::string output_;
  int waitStatus_ = 0;
  int error_ = 0;
};

}  // namespace

Napi::Value toolRun(const Napi::CallbackInfo& call) {
  auto* run = new ToolRun(call.Env(), wordsArgument(call[0], "words"));  // deletes itself at its end
  const Napi::Value promise = run->promise();
  run->Queue();
  return promise;
}

}  // namespace ncclrun::binding
