// One pair of NICs of two hosts, as one of the two ranks measures it: two connections, one each way, by which the ranks
// exchange messages. Both call the same functions in the same order, each in its role. Spins; no call sleeps.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "net/net.h"

namespace ncclrun::net {

// Nanoseconds.
struct Latency {
  double median = 0;
  double percentile99 = 0;
};

class PairMeasurement {
 public:
  PairMeasurement(Network& network, uint32_t device) : network_(network), device_(device) {}
  ~PairMeasurement();
  PairMeasurement(const PairMeasurement&) = delete;
  PairMeasurement& operator=(const PairMeasurement&) = delete;

  // Where the other rank connects to.
  Status listen(Handle& handle);
  // Connects both ways; an error where the other rank does not within seconds.
  Status connect(const Handle& peer);

  // Half of a round trip of 8 bytes. The leader decides how many there are, and alone gets the result.
  Status latency(bool leads, Latency& out);
  // Messages of `bytes` one way. Only the receiver gets the result, in bytes per nanosecond.
  Status send(uint64_t bytes);
  Status receive(uint64_t bytes, double& bytesPerNanosecond);
  // Of all that this rank has sent here.
  std::optional<Traffic> traffic() const { return sender_ == nullptr ? std::nullopt : sender_->traffic(); }

 private:
  class ProgressTimeout;

  // Memory that both connections may use.
  Status prepare(uint64_t bytes);
  void forget();
  std::byte* slot(Connection& connection, size_t index);

  // For waits in messages of `bytes`.
  ProgressTimeout timeoutFor(uint64_t bytes) const;
  Status complete(Connection& connection, Request* request, ProgressTimeout& timeout);
  Status post(size_t slot, uint64_t bytes, Request*& out);
  Status begin(size_t slot, uint64_t bytes, Request*& out);
  Status stream(bool sends, uint64_t bytes, uint64_t messages, uint64_t& firstAt, uint64_t& lastAt);

  Network& network_;
  const uint32_t device_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
  std::vector<std::byte> memory_;  // of the sender, then of the receiver
  size_t depth_ = 0;               // buffers of each
  size_t stride_ = 0;
  Registration sends_ = {}, receives_ = {};
  bool hasSends_ = false, hasReceives_ = false;
};

}  // namespace ncclrun::net
