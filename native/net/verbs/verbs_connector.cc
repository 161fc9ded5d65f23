#include "net/verbs/verbs_connector.h"

#include <utility>

#include "net/verbs/verbs_network.h"
#include "net/verbs/verbs_sender.h"

namespace ncclrun::net {

VerbsConnector::VerbsConnector(VerbsNetwork& network, uint32_t device, const ListenerAddress& peer)
    : network_(network), device_(device), peer_(peer.address.textWithPort()), socket_(network.sockets(), 0, peer) {}

Status VerbsConnector::connect(std::unique_ptr<Sender>& out) {
  out = nullptr;
  if (link_ == nullptr) {
    std::vector<Descriptor> sockets;
    NCCLRUN_TRY(socket_.connectSockets(sockets));
    if (sockets.empty()) return {};
    link_ = std::make_unique<VerbsLink>(VerbsLink::Setup{
        .network = network_, .device = device_, .sends = true, .control = std::move(sockets[0]), .peer = peer_});
  }
  bool ready = false;
  NCCLRUN_TRY(link_->establish(ready));
  if (ready) out = std::make_unique<VerbsSender>(std::move(link_));
  return {};
}

}  // namespace ncclrun::net
