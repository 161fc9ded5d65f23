// A table of a plugin that this process has loaded: of a network (plugin.h) or of a collective network
// (collective_plugin.h). It stays loaded until the process ends: libraries under plugins leave threads and exit
// handlers behind.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/net.h"
#include "net/plugin/table_calls.h"

namespace ncclrun::net::plugin {

class LoadedPlugin {
 public:
  LoadedPlugin(const LoadedPlugin&) = delete;
  LoadedPlugin& operator=(const LoadedPlugin&) = delete;

  const std::string& library() const { return library_; }
  // What its table says before init(), or the library where it says nothing.
  const std::string& name() const { return name_; }
  TableCalls& table() const { return table_; }

  // One communicator begins to use the plugin: init(), of versions before 11 only the first time. An error says why the
  // plugin cannot be used on this host.
  Status begin(uint64_t communicatorId, void*& context);
  void end(void* context);
  // Those of the first init().
  std::span<const Device> devices() const { return devices_; }

  // The error of a call that returned `code`, with what the plugin said last.
  Status failure(const char* call, int code) const;
  // "network plugin NAME (LIBRARY)".
  std::string label() const;

 protected:
  // kind: "network plugin". `table` outlives the plugin.
  LoadedPlugin(const char* kind, std::string library, TableCalls& table);
  ~LoadedPlugin() = default;

 private:
  Status initialize(uint64_t communicatorId, void*& context);
  Status readDevices();
  Status hasNo(const std::string& member) const;

  const char* const kind_;
  const std::string library_;
  TableCalls& table_;
  const std::string name_;
  std::mutex mutex_;                   // of what follows
  std::optional<Status> initialized_;  // before version 11: the result of the only init()
  std::vector<Device> devices_;        // not changed any more once it is not empty
};

}  // namespace ncclrun::net::plugin
