// What every transport offers: the ends of connections between one rank and others. One conformance test serves all
// (test/transport_test.cc).
#pragma once
#include "base/error.h"
#include "net/endpoint.h"

namespace ncclrun {

class Transport {
 public:
  virtual ~Transport() = default;

  // This rank's end of the connection with `peer` on `channel` (kPairChannel: that of the two ranks). Made, and its
  // connecting begun, at the first call; never blocks. Owned by the transport. The other rank asks for its own end at
  // any time, also much later. Null if the system refuses the memory: then the communicator is interrupted.
  virtual Endpoint* end(uint32_t peer, uint32_t channel, bool sends) = 0;

  // ncclSuccess when every sending end made so far is connected and every planned receiving end is; ncclInProgress
  // before; else the error.
  virtual Status connected() const = 0;

  // Raises the interrupt if a peer on another host has sent what the call under way will never read.
  virtual void checkPeers() {}
  // What peers on other hosts send next rings, also where no block waits for it.
  virtual void watchAll() {}

  // True when nothing waits to be carried.
  virtual bool idle() const = 0;
};

}  // namespace ncclrun
