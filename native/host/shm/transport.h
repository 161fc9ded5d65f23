// Shared memory between the ranks of one host. Where each connection lies is in the plan; nothing needs connecting.
#pragma once
#include <map>
#include <memory>
#include <tuple>

#include "host/shm/endpoint.h"
#include "net/transport.h"
#include "plan/plan_view.h"
#include "plan/segment.h"

namespace ncclrun {

class ShmTransport final : public Transport {
 public:
  // current: the call under way.
  ShmTransport(const PlanView& plan, const Segment& segment, uint32_t rank, const OwnCall& current,
               const GonePeers& gonePeers)
      : plan_(plan), segment_(segment), rank_(rank), current_(current), gonePeers_(gonePeers) {}

  Endpoint* endpoint(uint32_t peer, uint32_t channel, bool sends) override;
  Status connected() const override { return {}; }
  bool idle() const override { return true; }

 private:
  uint64_t offset(uint32_t peer, uint32_t channel, bool sends) const;

  const PlanView& plan_;
  const Segment& segment_;
  const uint32_t rank_;
  const OwnCall& current_;
  const GonePeers& gonePeers_;
  std::map<std::tuple<uint32_t, uint32_t, bool>, std::unique_ptr<ShmEndpoint>> connections_;
};

}  // namespace ncclrun
