// Which network carries a communicator's data.
#pragma once
#include <memory>

#include "base/error.h"
#include "net/net.h"
#include "net/socket/wire.h"
#include "plan/plan_view.h"

namespace ncclrun::net {

// Name of the backend that every host has.
inline constexpr const char* kSocketNetwork = "Socket";

// The network of a communicator's data: the first plugin that serves this host and is what NCCL_NET_PLUGIN and NCCL_NET
// ask for, else InfiniBand or sockets, as the plan says. An error lists what there is, where NCCL_NET names none of
// that.
Status chooseNetwork(const PlanView& plan, const Token& token, std::unique_ptr<Network>& out);

plan::Transport transportOf(const Network& network);

}  // namespace ncclrun::net
