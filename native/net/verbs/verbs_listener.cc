#include "net/verbs/verbs_listener.h"

#include <utility>
#include <vector>

#include "net/verbs/verbs_network.h"
#include "net/verbs/verbs_receiver.h"

namespace ncclrun::net {

VerbsListener::VerbsListener(VerbsNetwork& network, std::shared_ptr<Acceptor> acceptor, uint32_t device)
    : network_(network),
      acceptor_(std::move(acceptor)),
      device_(device),
      number_(acceptor_->open(network.config().token, [&network] { network.sockets().notify(); })) {}

VerbsListener::~VerbsListener() {
  acceptor_->close(number_);
  network_.sockets().releaseAcceptor(*acceptor_);
}

Status VerbsListener::accept(std::unique_ptr<Receiver>& out) {
  out = nullptr;
  std::vector<AcceptedSocket> arrived;
  NCCLRUN_TRY(acceptor_->poll(number_, arrived));
  for (AcceptedSocket& one : arrived) {
    links_.push_back(std::make_unique<VerbsLink>(VerbsLink::Setup{.network = network_,
                                                                  .device = device_,
                                                                  .sends = false,
                                                                  .control = std::move(one.descriptor),
                                                                  .peer = one.peer}));
  }
  for (auto at = links_.begin(); at != links_.end();) {
    bool ready = false;
    const Status status = (*at)->establish(ready);
    if (status.ok() && !ready) {
      at++;
      continue;
    }
    std::unique_ptr<VerbsLink> link = std::move(*at);
    at = links_.erase(at);
    if (status.ok()) {
      out = std::make_unique<VerbsReceiver>(std::move(link));
      return {};
    }
    // Who goes while it connects may come again.
    if (!link->isPeerGone()) return status;
  }
  return {};
}

}  // namespace ncclrun::net
