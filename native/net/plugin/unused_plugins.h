// Plugins of NCCL's that ncclrun does not call: tuners and profilers. They are found and named, so that nobody waits
// for what one would do.
#pragma once
#include <string>

namespace ncclrun::net::plugin {

// Warns of each library that NCCL_TUNER_PLUGIN or NCCL_PROFILER_PLUGIN asks for. The first call of a process alone
// does.
void reportWishedPlugins();

// Logs the tuners and profilers that the library of a network plugin exports beside the network, which nobody asked
// for. label: "network plugin NAME (LIBRARY)"; handle: dlopen()'s.
void reportExportedPlugins(const std::string& label, void* handle);

}  // namespace ncclrun::net::plugin
