// What both sides of a connection keep: who moves each of its sockets, and why it failed.
#pragma once
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "net/socket/helper_thread.h"
#include "net/socket/socket_network.h"

namespace ncclrun::net {

// The first failure of a connection. Any thread.
class ConnectionFailure {
 public:
  // `where`: "the connection with 10.0.0.2 port 4000 from 10.0.0.1 (eth0)"
  explicit ConnectionFailure(std::string where) : where_(std::move(where)) {}

  void set(ncclResult_t code, const std::string& why) {
    std::lock_guard lock(mutex_);
    if (!status_.ok()) return;
    status_ = {code, where_ + ": " + why};
    failed_.store(true, std::memory_order_release);
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  Status status() const {
    std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  const std::string where_;
  mutable std::mutex mutex_;
  Status status_;
  std::atomic<bool> failed_{false};
};

// "the connection with … from …"
inline std::string describeConnection(const SocketNetwork& network, uint32_t device, const std::string& peer) {
  return "the connection with " + peer + " from " + describeDevice(network.config().devices[device]);
}

// A socket of a connection, and of that of the other direction where both carry their messages together.
class ConnectionSocket {
 public:
  ConnectionSocket(SocketNetwork& network, Descriptor descriptor)
      : network_(network), descriptor_(std::move(descriptor)) {}
  ~ConnectionSocket() {
    if (isShared.load(std::memory_order_relaxed)) network_.closeDelivered(std::move(descriptor_));
  }
  ConnectionSocket(const ConnectionSocket&) = delete;
  ConnectionSocket& operator=(const ConnectionSocket&) = delete;

  int get() const { return descriptor_.get(); }
  // The sender that uses it sends nothing more, while the receiver may go on.
  void endSending() const { shutdown(get(), SHUT_WR); }

  std::atomic<bool> isShared{false};
  std::atomic<uint64_t> offeredTo{0};  // number of the connection that may send here too; 0: the other side offers none

 private:
  SocketNetwork& network_;
  Descriptor descriptor_;
};

// One socket of a connection. A helper advances it, or, without one, the caller.
class SocketTask : public HelperTask {
 public:
  SocketTask(SocketNetwork& network, Descriptor socket, Helper* helper)
      : socket_(std::make_shared<ConnectionSocket>(network, std::move(socket))), network_(network), helper_(helper) {}
  SocketTask(const SocketTask&) = delete;
  SocketTask& operator=(const SocketTask&) = delete;

  Helper* helper() const { return helper_; }
  const std::shared_ptr<ConnectionSocket>& socket() const { return socket_; }
  Status start() {
    if (helper_ == nullptr) return network_.watch(socket_->get());
    network_.unwatch(socket_->get());
    return helper_->add(socket_->get(), *this);
  }
  // Once it returns, the helper does not advance this socket any more. The most derived class calls it first in its
  // destructor.
  void stop() {
    if (helper_ != nullptr) helper_->remove(socket_->get(), *this);
  }

 protected:
  ~SocketTask() = default;

  const std::shared_ptr<ConnectionSocket> socket_;
  SocketNetwork& network_;

 private:
  Helper* const helper_;
};

// The sockets of one side of a connection, in the order of their indices.
template <class Task>
class SocketTasks {
 public:
  void add(std::unique_ptr<Task> task) {
    hasHelpers_ = hasHelpers_ || task->helper() != nullptr;
    tasks_.push_back(std::move(task));
  }
  // Called once, when all have been added.
  Status start() {
    for (const auto& task : tasks_) NCCLRUN_TRY(task->start());
    return {};
  }
  // Ends the work of helpers on them: nobody but the caller touches the memory of requests from then on.
  void stop() {
    for (const auto& task : tasks_) task->stop();
  }
  // The same, and closes them. A helper that is at work on one may wake the helpers of all: none goes before that.
  void clear() {
    stop();
    tasks_.clear();
  }
  size_t size() const { return tasks_.size(); }
  const std::vector<std::unique_ptr<Task>>& all() const { return tasks_; }
  bool hasHelpers() const { return hasHelpers_; }
  // The one that the caller moves, beside those of helpers (SocketNetwork::helperOf); null: it moves several.
  Task* own() const { return tasks_.size() == 1 || hasHelpers_ ? tasks_[0].get() : nullptr; }

  // Moves what the caller's own sockets can move.
  void advanceInline() {
    for (const auto& task : tasks_) {
      if (task->helper() == nullptr) task->advance();
    }
  }
  void wakeHelpers() {
    for (const auto& task : tasks_) {
      if (task->helper() != nullptr) task->helper()->wake();
    }
  }

 private:
  std::vector<std::unique_ptr<Task>> tasks_;
  bool hasHelpers_ = false;
};

// Registers memory for either side: sockets need no registration.
inline Status registerForSockets(const Region& region, Registration& out) {
  if (region.type != MemoryType::host) return {ncclInvalidUsage, "sockets carry host memory only"};
  out = {};
  return {};
}

}  // namespace ncclrun::net
