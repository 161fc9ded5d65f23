// Connecting and accepting through a plugin, in the calling thread or, where it may block, in threads for that.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "net/net.h"
#include "net/plugin/plugin.h"

namespace ncclrun::net::plugin {

// What the connections of one communicator have in common.
struct Use {
  Plugin& plugin;
  void* context = nullptr;
  uint64_t timeout = 0;                                                              // ns
  std::shared_ptr<std::atomic<int>> inside = std::make_shared<std::atomic<int>>(0);  // threads in a blocking call
};

Status makeListener(const Use& use, uint32_t device, Handle& handle, std::unique_ptr<Listener>& out);
Status makeConnector(const Use& use, uint32_t device, const Handle& handle, std::unique_ptr<Connector>& out);

}  // namespace ncclrun::net::plugin
