// What a plugin's listen() has made. The last one who may call it closes it: the listener, or a thread that is still in
// a call with it.
#pragma once
#include <memory>

#include "net/net.h"
#include "net/plugin/loaded_plugin.h"

namespace ncclrun::net::plugin {

// Plugins keep pointers in handles.
struct alignas(16) PrivateHandle {
  Handle bytes{};
};

class ListenComm {
 public:
  static Status make(LoadedPlugin& plugin, void* context, uint32_t device, Handle& handle,
                     std::shared_ptr<ListenComm>& out);
  ListenComm(LoadedPlugin& plugin, void* comm) : plugin_(plugin), comm_(comm) {}
  ~ListenComm();
  ListenComm(const ListenComm&) = delete;
  ListenComm& operator=(const ListenComm&) = delete;

  void* get() const { return comm_; }

 private:
  LoadedPlugin& plugin_;
  void* const comm_;
};

// An error: the plugin has no such device.
Status checkDevice(const LoadedPlugin& plugin, uint32_t device);

}  // namespace ncclrun::net::plugin
