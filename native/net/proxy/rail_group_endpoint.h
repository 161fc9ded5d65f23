// One side of a rail's group as a block uses it: what it sends, the network reduces, and what it receives is the
// result.
#pragma once
#include "net/endpoint.h"
#include "net/proxy/rail_group.h"

namespace ncclrun {

// What such an endpoint asks of the transport that made it.
class RailGroupOwner {
 public:
  // The block waits for the group, or has given it something: the proxy is to move it.
  virtual void moveGroup() = 0;
  // Why the group brings nothing any more.
  virtual Status whyGroupGone() = 0;

 protected:
  ~RailGroupOwner() = default;
};

class RailGroupEndpoint final : public Endpoint {
 public:
  RailGroupEndpoint(const Facts& facts, const OwnCall& current, RailGroup::Side& side, size_t stride,
                    RailGroupOwner& owner)
      : Endpoint(facts, current,
                 {.connection = side.ring,
                  .slots = side.slots,
                  .stride = stride,
                  .bell = nullptr,
                  .calls = side.calls.data(),
                  .moves = true}),
        owner_(owner) {}

  void watch() override { owner_.moveGroup(); }
  Status gone() override { return owner_.whyGroupGone(); }

 protected:
  void move() override { owner_.moveGroup(); }

 private:
  RailGroupOwner& owner_;
};

}  // namespace ncclrun
