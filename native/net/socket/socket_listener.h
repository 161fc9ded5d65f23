// A listener of the socket backend: collects the sockets of each connection until all have come.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "net/net.h"
#include "net/socket/acceptor.h"
#include "net/socket/socket_network.h"

namespace ncclrun::net {

class SocketListener final : public Listener {
 public:
  SocketListener(SocketNetwork& network, std::shared_ptr<Acceptor> acceptor, uint32_t device);
  ~SocketListener() override;

  Handle handle() const { return encodeHandle({acceptor_->address(), number_}); }
  Status accept(std::unique_ptr<Receiver>& out) override;

 private:
  struct Half {
    std::vector<AcceptedSocket> sockets;  // by index; those without a descriptor have not come yet
    size_t arrived = 0;
  };
  void sort(std::vector<AcceptedSocket> arrived);

  SocketNetwork& network_;
  const std::shared_ptr<Acceptor> acceptor_;
  const uint32_t device_, helperOffset_;
  const uint64_t number_;
  std::map<uint64_t, Half> halves_;  // by connection
  std::deque<std::vector<AcceptedSocket>> complete_;
};

}  // namespace ncclrun::net
