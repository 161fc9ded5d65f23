// One socket that carries out-of-band messages both ways.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "net/oob/message.h"

namespace ncclrun::net {

class OobSocket {
 public:
  static constexpr uint32_t kUnknown = ~0u;

  // peer: kUnknown until the other side has introduced itself.
  OobSocket(Descriptor socket, uint32_t peer);

  uint32_t peer() const { return peer_; }
  // Nanoseconds of the monotonic clock.
  uint64_t lastReceived() const { return lastReceived_; }
  uint64_t lastSent() const { return lastSent_; }
  // As the peer has introduced itself, in nanoseconds; 0: it has not.
  uint64_t peerTimeout() const { return peerTimeout_; }
  // The last heartbeat says that a debugger traces the peer.
  bool isPeerTraced() const { return isPeerTraced_; }
  // The other host has acknowledged nothing of what was sent for so long. One whose process is stopped does.
  bool isUnacknowledgedFor(uint64_t nanoseconds) const;
  void restartClock(uint64_t now) { lastReceived_ = now; }

  void queue(const OobMessage& message) { unsent_.push_back(message); }
  // Sends what there is room for; false: the socket is dead.
  bool send();
  bool hasUnsent() const { return !unsent_.empty(); }
  // Receives whole messages; false: the other side has closed the socket or it is dead; `why` says which.
  bool receive(uint32_t ranks, std::vector<OobMessage>& out, std::string& why);
  int descriptor() const { return socket_.get(); }

 private:
  // Keeps the peer's identity; false: it is not what this protocol says.
  bool accept(const OobMessage& message, uint32_t ranks);

  Descriptor socket_;
  uint32_t peer_;
  OobMessage incoming_;
  size_t received_ = 0;  // bytes of incoming_
  bool isPeerTraced_ = false;
  uint64_t peerTimeout_ = 0;
  std::deque<OobMessage> unsent_;
  size_t sent_ = 0;  // bytes of the first of them
  uint64_t lastReceived_, lastSent_;
};

}  // namespace ncclrun::net
