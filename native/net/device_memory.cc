#include "net/device_memory.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>

#include "base/clock.h"

namespace ncclrun::net {
namespace {

constexpr int kTag = 0;
constexpr size_t kCapacity = 64, kBytes = 8;  // of the test's message, which is smaller than its buffer

// Calls `step` until it returns true or fails; with an error after the timeout.
Status until(uint64_t deadline, const char* what, auto&& step) {
  constexpr auto kPause = std::chrono::microseconds(50);
  for (;;) {
    bool isDone = false;
    NCCLRUN_TRY(step(isDone));
    if (isDone) return {};
    if (nowNanoseconds() > deadline) return {ncclSystemError, std::string(what) + " takes too long"};
    std::this_thread::sleep_for(kPause);
  }
}

// One side's registration, as long as it lives.
class Registered {
 public:
  explicit Registered(Connection& connection) : connection_(connection) {}
  ~Registered() {
    if (isRegistered_) connection_.deregisterMemory(registration_);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  Status add(const Device& device, const Region& region, DeviceRegistration& how) {
    NCCLRUN_TRY(region.type == MemoryType::device
                    ? registerDeviceMemory(connection_, device, region, registration_, how)
                    : connection_.registerMemory(region, registration_));
    isRegistered_ = true;
    return {};
  }
  Registration get() const { return registration_; }

 private:
  Connection& connection_;
  Registration registration_;
  bool isRegistered_ = false;
};

Status await(Connection& connection, Request* request, uint64_t deadline, const char* what,
             std::span<size_t> sizes = {}) {
  return until(deadline, what, [&](bool& isDone) { return connection.test(request, isDone, sizes); });
}

// From memory of the host into the region. What a device says of the message's size counts: the proxy cannot read it in
// GPU memory.
Status transfer(Sender& sender, Receiver& receiver, const Registered& to, const LoopTest& test, uint64_t deadline) {
  std::array<std::byte, kCapacity> message{};
  Registered from(sender);
  DeviceRegistration unused;
  NCCLRUN_TRY(from.add({}, {.address = message.data(), .bytes = message.size()}, unused));
  const Buffer buffer{.address = test.region.address, .bytes = kCapacity, .tag = kTag, .registration = to.get()};
  Request *receiving = nullptr, *sending = nullptr, *flush = nullptr;
  NCCLRUN_TRY(until(deadline, "posting a receive", [&](bool& isDone) {
    Status status = receiver.irecv({&buffer, 1}, receiving);
    isDone = receiving != nullptr;
    return status;
  }));
  NCCLRUN_TRY(until(deadline, "posting a send", [&](bool& isDone) {
    Status status = sender.isend(message.data(), kBytes, kTag, from.get(), sending);
    isDone = sending != nullptr;
    return status;
  }));
  size_t bytes = 0;
  bool isSent = false, isReceived = false;
  NCCLRUN_TRY(until(deadline, "a message to itself", [&](bool& isDone) {
    if (!isSent) NCCLRUN_TRY(sender.test(sending, isSent, {}));
    if (!isReceived) NCCLRUN_TRY(receiver.test(receiving, isReceived, {&bytes, 1}));
    isDone = isSent && isReceived;
    return Status{};
  }));
  if (bytes != kBytes) {
    return {ncclInvalidUsage, "it reports " + std::to_string(bytes) + " bytes of a message of " +
                                  std::to_string(kBytes) + ", and GPUDirect needs the true size"};
  }
  if (!test.flushes) return {};
  const Buffer received{.address = buffer.address, .bytes = kBytes, .tag = kTag, .registration = to.get()};
  NCCLRUN_TRY(receiver.iflush({&received, 1}, flush));
  return flush == nullptr ? Status{} : await(receiver, flush, deadline, "a flush");
}

}  // namespace

Status registerDeviceMemory(const RegisterMemory& registerMemory, const Device& device, const Region& region,
                            Registration& out, DeviceRegistration& how) {
  how = {.byDmaBuf = device.dmaBuf && region.dmaBufDescriptor >= 0, .refused = {}};
  if (how.byDmaBuf) how.refused = registerMemory(region, out);
  if (how.byDmaBuf && how.refused.ok()) return {};
  how.byDmaBuf = false;
  Region plain = region;
  plain.dmaBufDescriptor = -1;
  plain.dmaBufOffset = 0;
  Status status = registerMemory(plain, out);
  if (!status.ok() && !how.refused.ok()) status.sentence += "; before, by a dma-buf: " + how.refused.sentence;
  return status;
}

Status testLoop(Network& network, uint32_t device, const LoopTest& test, DeviceRegistration& how) {
  const uint64_t deadline = nowNanoseconds() + test.timeoutNanoseconds;
  Handle handle = {};
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connector> connector;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  NCCLRUN_TRY(network.listen(device, handle, listener));
  NCCLRUN_TRY(network.connect(device, handle, connector));
  NCCLRUN_TRY(until(deadline, "a connection to itself", [&](bool& isDone) {
    if (sender == nullptr) NCCLRUN_TRY(connector->connect(sender));
    if (receiver == nullptr) NCCLRUN_TRY(listener->accept(receiver));
    isDone = sender != nullptr && receiver != nullptr;
    return Status{};
  }));
  Registered toSend(*sender), toReceive(*receiver);
  const Device& facts = network.devices()[device];
  NCCLRUN_TRY(toSend.add(facts, test.region, how));
  NCCLRUN_TRY(toReceive.add(facts, test.region, how));
  return transfer(*sender, *receiver, toReceive, test, deadline);
}

}  // namespace ncclrun::net
