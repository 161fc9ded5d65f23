// Which network carries a communicator's data.
#pragma once
#include <memory>
#include <string>

#include "base/error.h"
#include "net/net.h"
#include "net/socket/wire.h"

namespace ncclrun::net {

struct NetworkChoice {
  Token token = {};         // of the communicator
  std::string interface;    // of the host's sockets; may be empty
  std::string address = {};
};
// The first plugin that serves this host and is what NCCL_NET_PLUGIN and NCCL_NET ask for, else sockets. An error lists
// what there is, where NCCL_NET names none of that.
Status chooseNetwork(const NetworkChoice& choice, std::unique_ptr<Network>& out);

}  // namespace ncclrun::net
