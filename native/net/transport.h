// What every transport offers: one side of each connection between one rank and others. One conformance test serves all
// (test/transport_test.cc).
#pragma once
#include "base/error.h"
#include "net/endpoint.h"

namespace ncclrun {

class Transport {
 public:
  virtual ~Transport() = default;

  // This rank's endpoint of the connection with `peer` on `channel` (kPairChannel: that of the two ranks). Made, and
  // its connecting begun, at the first call; never blocks. Owned by the transport. The other rank asks for its own
  // endpoint at any time, also much later. Null if the system refuses what it takes: then the communicator is
  // interrupted.
  virtual Endpoint* endpoint(uint32_t peer, uint32_t channel, bool sends) = 0;

  // ncclSuccess when every sending endpoint made so far is connected and every planned receiving one is;
  // ncclInProgress before; else the error.
  virtual Status connected() const = 0;

  // Raises the interrupt if a peer on another host has sent what the call under way will never read.
  virtual void checkPeers() {}
  // From now on the doorbell also rings for what peers on other hosts send and no block waits for.
  virtual void watchAll() {}
  // A launch begins and ends. What its blocks have left behind then is the proxy's.
  virtual void beginLaunch() {}
  virtual void endLaunch() {}

  // True when nothing waits to be carried.
  virtual bool idle() const = 0;
};

}  // namespace ncclrun
