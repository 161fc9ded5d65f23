// A connection through the host segment: both processes work on the same ring.
#pragma once
#include "transport/endpoint.h"

namespace ncclrun {

class ShmEndpoint final : public Endpoint {
 public:
  // bell: the peer's doorbell.
  ShmEndpoint(const Facts& facts, Connection& shared, Doorbell& bell) : Endpoint(facts, shared, &bell, false) {}
};

}  // namespace ncclrun
