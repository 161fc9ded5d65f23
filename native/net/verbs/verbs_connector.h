// A connection over verbs that this side makes: a socket that proves itself, then the introduction over it.
#pragma once
#include <memory>
#include <vector>

#include "net/net.h"
#include "net/socket/socket_connector.h"
#include "net/verbs/verbs_link.h"

namespace ncclrun::net {

class VerbsConnector final : public Connector {
 public:
  VerbsConnector(VerbsNetwork& network, uint32_t device, const ListenerAddress& peer);

  Status connect(std::unique_ptr<Sender>& out) override;

 private:
  VerbsNetwork& network_;
  const uint32_t device_;
  const std::string peer_;
  SocketConnector socket_;
  std::unique_ptr<VerbsLink> link_;
};

}  // namespace ncclrun::net
