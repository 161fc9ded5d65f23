#include "net/plugin/establish.h"

#include "base/clock.h"
#include "nccl.h"
#include "net/plugin/attempt.h"
#include "net/plugin/connection.h"
#include "net/plugin/listen_comm.h"

namespace ncclrun::net::plugin {
namespace {

// Repeats a call until it yields a connection: here at every poll, or in a thread.
class Repeated {
 public:
  // `call` owns all that it needs; `close` closes a connection that it yields when nobody wants it any more.
  Repeated(const Use& use, Attempt::Kind kind, std::function<Yield()> call, std::function<void(void*)> close)
      : use_(use),
        kind_(kind),
        name_(kind == Attempt::Kind::connect ? "connect" : "accept"),
        call_(std::move(call)),
        close_(std::move(close)),
        blocks_(use.plugin.mayBlock()) {}

  // `comm` null: not yet.
  Status poll(void*& comm) {
    comm = nullptr;
    Yield yield;
    bool isOver = false;
    if (const Status status = blocks_ ? pollThread(isOver, yield) : pollHere(isOver, yield); !status.ok())
      return status;
    if (!isOver) return {};
    if (yield.code != ncclSuccess) return use_.plugin.failure(name_, yield.code);
    comm = yield.comm;
    return refusalOf(yield);
  }

 private:
  Status pollHere(bool& isOver, Yield& yield) {
    const uint64_t began = nowNanoseconds();
    yield = call_();
    use_.plugin.noteCallTook(nowNanoseconds() - began);
    isOver = yield.code != ncclSuccess || yield.comm != nullptr;
    return {};
  }

  Status pollThread(bool& isOver, Yield& yield) {
    if (attempt_ == nullptr) {
      const Status status = Attempt::start(
          {kind_, use_.plugin.label() + ": " + name_, use_.timeout, call_, close_, use_.inside}, attempt_);
      if (!status.ok()) return status;
    }
    return attempt_->poll(isOver, yield);
  }

  Status refusalOf(const Yield& yield) const {
    if (yield.driver == nullptr || yield.driver->type == abi::kDrivenByHost) return {};
    return {ncclInvalidUsage,
            formatSentence("%s: %s wants GPU kernels to drive the connection (network device type %d), which ncclrun "
                           "does not have",
                           use_.plugin.label().c_str(), name_, yield.driver->type)};
  }

  const Use& use_;
  const Attempt::Kind kind_;
  const char* const name_;
  const std::function<Yield()> call_;
  const std::function<void(void*)> close_;
  const bool blocks_;  // never changes: a handshake stays in the thread that began it
  std::unique_ptr<Attempt> attempt_;
};

// What connect() needs as long as it lasts. A plugin keeps the state of the handshake in the handle.
struct Handshake {
  PrivateHandle handle;
  abi::DeviceHandle* driver = nullptr;
};

class PluginConnector final : public Connector {
 public:
  PluginConnector(const Use& use, uint32_t device, const Handle& handle)
      : use_(use),
        device_(device),
        connecting_(use, Attempt::Kind::connect, callOf(use, device, handle),
                    [&plugin = use.plugin](void* comm) { plugin.calls().closeSend(comm); }) {}

  Status connect(std::unique_ptr<Sender>& out) override {
    void* comm = nullptr;
    Status status = connecting_.poll(comm);
    if (comm == nullptr) return status;
    auto sender = makeSender(use_.plugin, use_.plugin.devices()[device_], comm);  // closes it where it is refused
    if (status.ok()) out = std::move(sender);
    return status;
  }

 private:
  static std::function<Yield()> callOf(const Use& use, uint32_t device, const Handle& handle) {
    auto handshake = std::make_shared<Handshake>();
    handshake->handle.bytes = handle;
    return [&plugin = use.plugin, context = use.context, device, handshake] {
      Yield made;
      made.code =
          plugin.calls().connect(context, int(device), handshake->handle.bytes.data(), &made.comm, &handshake->driver);
      made.driver = handshake->driver;
      return made;
    };
  }

  const Use& use_;
  const uint32_t device_;
  Repeated connecting_;
};

// What one listener accepts, in turn.
class Acceptor {
 public:
  Acceptor(Plugin& plugin, std::shared_ptr<ListenComm> comm) : plugin_(plugin), comm_(std::move(comm)) {}

  Yield accept() {
    Yield made;
    made.code = plugin_.calls().accept(comm_->get(), &made.comm, &driver_);
    made.driver = driver_;
    if (made.comm != nullptr) driver_ = nullptr;
    return made;
  }

 private:
  Plugin& plugin_;
  const std::shared_ptr<ListenComm> comm_;
  abi::DeviceHandle* driver_ = nullptr;
};

class PluginListener final : public Listener {
 public:
  PluginListener(const Use& use, uint32_t device, std::shared_ptr<ListenComm> comm)
      : use_(use), device_(device), acceptor_(std::make_shared<Acceptor>(use.plugin, std::move(comm))) {}

  Status accept(std::unique_ptr<Receiver>& out) override {
    if (accepting_ == nullptr) {
      accepting_ = std::make_unique<Repeated>(
          use_, Attempt::Kind::accept, [acceptor = acceptor_] { return acceptor->accept(); },
          [&plugin = use_.plugin](void* comm) { plugin.calls().closeRecv(comm); });
    }
    void* comm = nullptr;
    Status status = accepting_->poll(comm);
    if (comm == nullptr) return status;
    accepting_.reset();  // the next call accepts the next connection
    auto receiver = makeReceiver(use_.plugin, use_.plugin.devices()[device_], comm);
    if (status.ok()) out = std::move(receiver);
    return status;
  }

 private:
  const Use& use_;
  const uint32_t device_;
  const std::shared_ptr<Acceptor> acceptor_;
  std::unique_ptr<Repeated> accepting_;
};

}  // namespace

Status makeListener(const Use& use, uint32_t device, Handle& handle, std::unique_ptr<Listener>& out) {
  std::shared_ptr<ListenComm> comm;
  if (Status status = ListenComm::make(use.plugin, use.context, device, handle, comm); !status.ok()) return status;
  out = std::make_unique<PluginListener>(use, device, std::move(comm));
  return {};
}

Status makeConnector(const Use& use, uint32_t device, const Handle& handle, std::unique_ptr<Connector>& out) {
  if (Status status = checkDevice(use.plugin, device); !status.ok()) return status;
  out = std::make_unique<PluginConnector>(use, device, handle);
  return {};
}

}  // namespace ncclrun::net::plugin
