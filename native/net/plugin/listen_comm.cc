#include "net/plugin/listen_comm.h"

#include "base/debug.h"
#include "nccl.h"

namespace ncclrun::net::plugin {

Status checkDevice(const LoadedPlugin& plugin, uint32_t device) {
  if (device < plugin.devices().size()) return {};
  return {ncclInvalidArgument, formatSentence("%s has %zu devices: there is no device %u", plugin.label().c_str(),
                                              plugin.devices().size(), device)};
}

Status ListenComm::make(LoadedPlugin& plugin, void* context, uint32_t device, Handle& handle,
                        std::shared_ptr<ListenComm>& out) {
  if (Status status = checkDevice(plugin, device); !status.ok()) return status;
  PrivateHandle mine;
  void* comm = nullptr;
  const int code = plugin.table().listen(context, int(device), mine.bytes.data(), &comm);
  if (code != ncclSuccess) return plugin.failure("listen", code);
  if (comm == nullptr)
    return {ncclInternalError, formatSentence("%s: listen made no listener", plugin.label().c_str())};
  handle = mine.bytes;
  out = std::make_shared<ListenComm>(plugin, comm);
  return {};
}

ListenComm::~ListenComm() {
  if (const int code = plugin_.table().closeListen(comm_); code != ncclSuccess)
    logInfo(plugin_.failure("closeListen", code).sentence, Subsystem::net);
}

}  // namespace ncclrun::net::plugin
