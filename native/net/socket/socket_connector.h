// A connection that this side makes: opens its sockets from the device's address, and proves on each that it knows the
// communicator's token, as the other side must.
#pragma once
#include <memory>
#include <vector>

#include "base/descriptor.h"
#include "net/net.h"
#include "net/socket/address.h"
#include "net/socket/socket_network.h"
#include "net/socket/wire.h"

namespace ncclrun::net {

class SocketConnector final : public Connector {
 public:
  SocketConnector(SocketNetwork& network, uint32_t device, const ListenerAddress& peer);

  Status connect(std::unique_ptr<Sender>& out) override;
  // The sockets alone, by index, when the other side has admitted all of them; empty before.
  Status connectSockets(std::vector<Descriptor>& out);

 private:
  enum class Stage { start, connecting, challenged, proved, connected };
  struct Attempt {
    Descriptor socket;
    Stage stage = Stage::start;
    Hello hello;
    Challenge challenge;
    size_t received = 0;     // bytes of challenge
    uint64_t notBefore = 0;  // nanoseconds: the next try
  };

  Status advance(Attempt& attempt);
  Status begin(Attempt& attempt);
  Status receiveChallenge(Attempt& attempt);
  Status receiveAdmission(Attempt& attempt);
  // The other side is not there, or not yet: tries again a little later, or says why not.
  Status again(Attempt& attempt, int error);
  Status failed(ncclResult_t code, const std::string& why) const;

  SocketNetwork& network_;
  const uint32_t device_, helperOffset_;
  const ListenerAddress peer_;
  const uint64_t begunAt_;  // nanoseconds
  std::vector<Attempt> attempts_;
  Descriptor timer_;  // made for the first pause
};

}  // namespace ncclrun::net
