// A plugin's collective network (ncclCollNet) as a CollectiveNetwork.
#pragma once
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "net/collective_network.h"
#include "net/plugin/collective_plugin.h"

namespace ncclrun::net::plugin {

// The collective network of one communicator. timeout: ns that connect() may take, which blocks until all members have
// called it. An error says why the plugin does not serve this host.
Status makeCollectiveNetwork(CollectivePlugin& plugin, uint64_t communicatorId, std::unique_ptr<CollectiveNetwork>& out,
                             uint64_t timeout);

}  // namespace ncclrun::net::plugin
