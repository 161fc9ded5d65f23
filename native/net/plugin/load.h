// Finds and opens plugins, as NCCL_NET_PLUGIN and NCCL_NET ask for them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/net.h"
#include "net/plugin/plugin.h"

namespace ncclrun::net::plugin {

// What the user asks for.
struct Wish {
  // NCCL_NET_PLUGIN: libraries, tried in their order; none: libnccl-net.so, where there is one.
  std::optional<std::string> libraries;
  // NCCL_NET: the name of a network, in any case; empty: any.
  std::string network;
};
Wish wishOfVariables();

// Opens the library that a word of NCCL_NET_PLUGIN stands for: a path, a library's name, NAME for libnccl-net-NAME.so,
// or STATIC_PLUGIN for the program itself. Each library is opened once per process.
Status openPlugin(const std::string& word, Plugin*& out);

struct Selection {
  std::unique_ptr<Network> network;  // null: no plugin serves this host
  std::vector<std::string> names;    // of the networks of all plugins that were tried
  std::vector<std::string> reasons;  // why plugins before `network` were passed over
};
// The first plugin that serves a communicator on this host. Its identifier is the same on all ranks. An error: a
// library was asked for that cannot be used, and no other one serves.
Status select(const Wish& wish, uint64_t communicatorId, Selection& out);

}  // namespace ncclrun::net::plugin
