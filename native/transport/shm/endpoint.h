// A connection through the host segment: both processes work on the same ring.
#pragma once
#include <memory>

#include "transport/endpoint.h"

namespace ncclrun {

class ShmEndpoint final : public Endpoint {
 public:
  // bell: the peer's doorbell.
  ShmEndpoint(const Facts& facts, const OwnCall& current, Connection& shared, Doorbell& bell)
      : Endpoint(facts, current, shared, &bell, nullptr),
        lines_(reinterpret_cast<std::byte*>(&shared) + lowLatencyOffset(facts.steps, facts.stepBytes)) {}

  Endpoint& lowLatency() override {
    if (lowLatency_ == nullptr) lowLatency_ = std::make_unique<LowLatencyEndpoint>(*this);
    return *lowLatency_;
  }

 private:
  class LowLatencyEndpoint final : public Endpoint {
   public:
    explicit LowLatencyEndpoint(ShmEndpoint& simple) : Endpoint(simple, buffered_), buffered_(simple.lines_) {}

   private:
    LowLatencyLines buffered_;
  };

  std::byte* const lines_;
  std::unique_ptr<LowLatencyEndpoint> lowLatency_;  // from its first use on
};

}  // namespace ncclrun
