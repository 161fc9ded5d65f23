// A network plugin that this process has loaded.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "net/plugin/adapt.h"
#include "net/plugin/loaded_plugin.h"

namespace ncclrun::net::plugin {

class CollectivePlugin;

class Plugin final : public LoadedPlugin {
 public:
  // handle: dlopen()'s, of the library that exports the table.
  Plugin(std::string library, void* handle, std::unique_ptr<Calls> calls);
  ~Plugin();

  Calls& calls() { return *calls_; }

  // The collective network (ncclCollNet) that the library exports beside the network; null: none that can be used. Only
  // after begin() has succeeded: such plugins may share what the network's init() sets up.
  CollectivePlugin* collective();

  // Whether connect() and accept() may block: those of version 6 do, others have been seen to.
  bool mayBlock() const { return blocks_.load(std::memory_order_relaxed); }
  void noteCallTook(uint64_t nanoseconds);

 private:
  void* const handle_;
  const std::unique_ptr<Calls> calls_;
  std::atomic<bool> blocks_;
  std::once_flag collectiveSought_;
  std::unique_ptr<CollectivePlugin> collective_;
};

}  // namespace ncclrun::net::plugin
