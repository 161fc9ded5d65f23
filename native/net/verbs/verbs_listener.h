// A listener of the verbs backend: takes sockets that have proved themselves, and introduces itself over them.
#pragma once
#include <list>
#include <memory>

#include "net/net.h"
#include "net/socket/acceptor.h"
#include "net/verbs/verbs_link.h"

namespace ncclrun::net {

class VerbsListener final : public Listener {
 public:
  VerbsListener(VerbsNetwork& network, std::shared_ptr<Acceptor> acceptor, uint32_t device);
  ~VerbsListener() override;

  Handle handle() const { return encodeHandle({acceptor_->address(), number_}); }
  Status accept(std::unique_ptr<Receiver>& out) override;

 private:
  VerbsNetwork& network_;
  const std::shared_ptr<Acceptor> acceptor_;
  const uint32_t device_;
  const uint64_t number_;
  std::list<std::unique_ptr<VerbsLink>> links_;  // that are not ready yet
};

}  // namespace ncclrun::net
