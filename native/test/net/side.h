// One side of a scenario of the conformance suite: its network, a line to the other side, and waiting with a clock.
#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "net/conformance.h"
#include "net/net.h"
#include "support/check.h"

namespace ncclrun::test {

// Memory of a backend's requests: a pattern that tells every 8 bytes of every message apart. Whole words are copied by
// loads and stores of that size, which sanitizers check much faster than calls.
inline uint64_t patternAt(size_t at, uint64_t seed) {
  return (seed + 1) * 0x9e3779b97f4a7c15u ^ at * 0xff51afd7ed558ccdu;
}
inline void fillPattern(std::byte* data, size_t bytes, uint64_t seed) {
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    const uint64_t value = patternAt(at, seed);
    std::memcpy(data + at, &value, 8);
  }
  const uint64_t value = patternAt(at, seed);
  std::memcpy(data + at, &value, bytes - at);
}
inline bool hasPattern(const std::byte* data, size_t bytes, uint64_t seed) {
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    uint64_t found;
    std::memcpy(&found, data + at, 8);
    if (found != patternAt(at, seed)) return false;
  }
  const uint64_t value = patternAt(at, seed);
  return std::memcmp(data + at, &value, bytes - at) == 0;
}

class Side {
 public:
  Side(const Backend& backend, int line) : backend_(backend), network_(backend.open()), line_(line) {
    if (network_ == nullptr) std::abort();
  }

  const BackendTraits& traits() const { return backend_.traits; }
  net::Network& network() { return *network_; }
  const net::Device& device() const { return network_->devices()[0]; }

  // Calls `step` until it returns true; false after `seconds`. Sleeps on the event descriptor where there is one, so a
  // missed event is a failure.
  template <class Step>
  bool until(Step&& step, double seconds = 30) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    const int descriptor = network_->eventDescriptor();
    while (!step()) {
      if (std::chrono::steady_clock::now() > end) return false;
      if (descriptor < 0) {
        usleep(20);
        continue;
      }
      pollfd event{.fd = descriptor, .events = POLLIN, .revents = 0};
      if (::poll(&event, 1, 500) > 0) {
        network_->clearEvents();
        continue;
      }
      if (!step()) continue;
      EXPECT_MORE(::poll(&event, 1, 0) > 0, "an event of " + backend_.name + " where progress could be made");
      return true;
    }
    return true;
  }

  // The line to the other side: small values, and meeting it. False: it is gone.
  template <class Value>
  bool tell(const Value& value) {
    return ::send(line_, &value, sizeof value, MSG_NOSIGNAL) == ssize_t(sizeof value);
  }
  template <class Value>
  bool hear(Value& value) {
    return ::recv(line_, &value, sizeof value, MSG_WAITALL) == ssize_t(sizeof value);
  }
  bool meet() {
    char mark = 'm';
    return tell(mark) && hear(mark);
  }

  std::unique_ptr<net::Listener> listen() {
    std::unique_ptr<net::Listener> listener;
    net::Handle handle = {};
    const Status status = network_->listen(0, handle, listener);
    EXPECT_MORE(status.ok(), status.sentence);
    EXPECT(tell(handle));
    return listener;
  }
  std::unique_ptr<net::Receiver> accept(net::Listener& listener) {
    std::unique_ptr<net::Receiver> receiver;
    Status status;
    until([&] {
      status = listener.accept(receiver);
      return receiver != nullptr || !status.ok();
    });
    return made(std::move(receiver), status);
  }
  std::unique_ptr<net::Connector> connector() {
    net::Handle handle = {};
    EXPECT(hear(handle));
    return connector(handle);
  }
  std::unique_ptr<net::Connector> connector(const net::Handle& handle) {
    std::unique_ptr<net::Connector> connector;
    const Status status = network_->connect(0, handle, connector);
    return made(std::move(connector), status);
  }
  std::unique_ptr<net::Sender> finish(net::Connector& connector) {
    std::unique_ptr<net::Sender> sender;
    Status status;
    until([&] {
      status = connector.connect(sender);
      return sender != nullptr || !status.ok();
    });
    return made(std::move(sender), status);
  }
  std::unique_ptr<net::Sender> connect() { return finish(*connector()); }
  std::unique_ptr<net::Receiver> listenAndAccept() { return accept(*listen()); }

  // Waits for a request; its status.
  Status wait(net::Connection& connection, net::Request* request, std::span<size_t> sizes, double seconds = 30) {
    Status status;
    bool done = false;
    const bool inTime = until(
        [&] {
          status = connection.test(request, done, sizes);
          return done || !status.ok();
        },
        seconds);
    if (!inTime) return {ncclInProgress, "the request is not complete in time"};
    return status;
  }
  Status send(net::Sender& sender, const std::byte* data, size_t bytes, int tag, net::Request*& request) {
    Status status;
    until([&] {
      status = sender.isend(data, bytes, tag, registration, request);
      return request != nullptr || !status.ok();
    });
    return status;
  }
  Status receive(net::Receiver& receiver, std::span<const net::Buffer> group, net::Request*& request) {
    Status status;
    until([&] {
      status = receiver.irecv(group, request);
      return request != nullptr || !status.ok();
    });
    return status;
  }

  net::Registration registration = {};  // of what the scenario has registered

 private:
  // Without it the scenario cannot go on.
  template <class Object>
  std::unique_ptr<Object> made(std::unique_ptr<Object> object, const Status& status) {
    if (object != nullptr) return object;
    fprintf(stderr, "%s: no connection: %s\n", backend_.name.c_str(), status.sentence.c_str());
    std::_Exit(1);
  }

  const Backend& backend_;
  std::unique_ptr<net::Network> network_;
  const int line_;
};

// Memory registered with a connection as long as it lives.
class RegisteredMemory {
 public:
  RegisteredMemory(net::Connection& connection, size_t bytes) : connection_(connection), memory_(bytes + 64) {
    const net::Region region{.address = memory_.data(), .bytes = memory_.size()};
    const Status status = connection.registerMemory(region, registration_);
    EXPECT_MORE(status.ok(), status.sentence);
  }
  ~RegisteredMemory() { EXPECT(connection_.deregisterMemory(registration_).ok()); }
  std::byte* data() { return memory_.data(); }
  net::Registration registration() const { return registration_; }

 private:
  net::Connection& connection_;
  std::vector<std::byte> memory_;
  net::Registration registration_;
};

}  // namespace ncclrun::test
