// A connection through the host segment: both processes work on the same ring.
#pragma once
#include <memory>

#include "datapath/gone_peers.h"
#include "net/endpoint.h"

namespace ncclrun {

class ShmEndpoint final : public Endpoint {
 public:
  // bell: the peer's doorbell.
  ShmEndpoint(const Facts& facts, const OwnCall& current, Connection& shared, Doorbell& bell,
              const GonePeers& gonePeers)
      : Endpoint(facts, current,
                 {.connection = shared,
                  .slots = reinterpret_cast<std::byte*>(&shared) + kConnectionHeaderBytes,
                  .stride = facts.stepBytes,
                  .bell = &bell,
                  .calls = nullptr,
                  .moves = false}),
        peerBell_(bell),
        gonePeers_(gonePeers),
        lines_(reinterpret_cast<std::byte*>(&shared) + llOffset(facts.steps, facts.stepBytes)) {}

  Endpoint& ll() override {
    if (ll_ == nullptr) ll_ = std::make_unique<LLEndpoint>(*this);
    return *ll_;
  }

  Status gone() override {
    const uint64_t left = peerBell_.left.load(std::memory_order_seq_cst);
    if (left != 0 && left != kAborted) return leftInOrder();
    const Status why = gonePeers_.why(facts().peer);
    return why.ok() && left == kAborted ? abortedBy(facts().peerName) : why;
  }

 private:
  class LLEndpoint final : public Endpoint {
   public:
    explicit LLEndpoint(ShmEndpoint& simple) : Endpoint(simple, buffered_), simple_(simple), buffered_(simple.lines_) {}
    Status gone() override { return simple_.gone(); }

   private:
    ShmEndpoint& simple_;
    LLLines buffered_;
  };

  const Doorbell& peerBell_;
  const GonePeers& gonePeers_;

  std::byte* const lines_;
  std::unique_ptr<LLEndpoint> ll_;  // from its first use on
};

}  // namespace ncclrun
