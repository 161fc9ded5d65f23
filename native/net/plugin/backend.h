// A plugin as a backend of net.h.
#pragma once
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "net/net.h"
#include "net/plugin/plugin.h"

namespace ncclrun::net::plugin {

// How long one call of a plugin that blocks may take.
inline constexpr uint64_t kCallTimeout = 30'000'000'000;  // ns

// The network of one communicator. An error says why the plugin does not serve this host.
Status makeNetwork(Plugin& plugin, uint64_t communicatorId, std::unique_ptr<Network>& out,
                   uint64_t timeout = kCallTimeout);

}  // namespace ncclrun::net::plugin
