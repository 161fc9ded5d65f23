// A network plugin that this process has loaded. It stays loaded until the process ends: libraries under plugins leave
// threads and exit handlers behind.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/net.h"
#include "net/plugin/adapt.h"

namespace ncclrun::net::plugin {

class Plugin {
 public:
  Plugin(std::string library, std::unique_ptr<Calls> calls);
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& library() const { return library_; }
  // What its table says before init(), or the library where it says nothing.
  const std::string& name() const { return name_; }
  Calls& calls() { return *calls_; }

  // One communicator begins to use the plugin: init(), of versions before 11 only the first time. An error says why the
  // plugin cannot be used on this host.
  Status begin(uint64_t communicatorId, void*& context);
  void end(void* context);
  // Those of the first init().
  std::span<const Device> devices() const { return devices_; }

  // Whether connect() and accept() may block: those of version 6 do, others have been seen to.
  bool mayBlock() const { return blocks_.load(std::memory_order_relaxed); }
  void noteCallTook(uint64_t nanoseconds);

  // The error of a call that returned `code`, with what the plugin said last.
  Status failure(const char* call, int code) const;
  // "network plugin NAME (LIBRARY)".
  std::string label() const;

 private:
  Status initialize(uint64_t communicatorId, void*& context);
  Status readDevices();

  const std::string library_;
  const std::unique_ptr<Calls> calls_;
  const std::string name_;
  std::atomic<bool> blocks_;
  std::mutex mutex_;                   // of what follows
  std::optional<Status> initialized_;  // before version 11: the result of the only init()
  std::vector<Device> devices_;        // not changed any more once it is not empty
};

}  // namespace ncclrun::net::plugin
