#include "communicator/find_network_plugin.h"

#include <cstdio>
#include <string>
#include <vector>

#include "net/plugin/load.h"

namespace ncclrun {
namespace {

ncclrunNic shownNic(const net::Device& device) {
  ncclrunNic nic = {};
  std::snprintf(nic.name, sizeof nic.name, "%s", device.name.c_str());
  nic.speedMbps = device.speedMbps;
  nic.port = device.port;
  nic.gpuDirect = device.deviceMemory ? 1 : 0;
  return nic;
}

}  // namespace

Status findNetworkPlugin(const ncclrunPluginListener& listener) {
  net::plugin::Selection selection;
  const Status status = net::plugin::select(net::plugin::wishOfVariables(), 0, selection);
  for (const std::string& reason : selection.reasons) listener.passedOver(listener.argument, reason.c_str());
  NCCLRUN_TRY(status);
  if (selection.network == nullptr) return {};
  std::vector<ncclrunNic> nics;
  for (const net::Device& device : selection.network->devices()) nics.push_back(shownNic(device));
  listener.serves(listener.argument, selection.network->name().c_str(), nics.data(), nics.size());
  return {};
}

}  // namespace ncclrun
