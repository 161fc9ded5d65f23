// Registering memory with a comm of a plugin.
#pragma once
#include "net/net.h"
#include "net/plugin/loaded_plugin.h"

namespace ncclrun::net::plugin {

Status registerWith(LoadedPlugin& plugin, const Device& device, void* comm, const Region& region, Registration& out);
Status deregisterWith(LoadedPlugin& plugin, void* comm, Registration registration);

}  // namespace ncclrun::net::plugin
