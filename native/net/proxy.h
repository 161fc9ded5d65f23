// The thread that carries slots over sockets while nobody else does, sleeping in epoll. One per process, shared by its
// communicators; started with the first that has connections to other hosts, ended with the last.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/descriptor.h"
#include "base/error.h"

namespace ncclrun {

// Somebody with a descriptor to watch.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // `events` as of epoll. Called on the proxy's thread, while no remove() returns.
  virtual void onEvents(uint32_t events) = 0;

 private:
  friend class Proxy;
  std::atomic<uint64_t> number_{0};  // in the proxy's book
};

class Proxy {
 public:
  // The process's proxy; made if there is none. Null with the reason if the system refuses.
  static std::shared_ptr<Proxy> shared(Status& why);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Watches `fd` edge-triggered for `events` until remove(). Any thread.
  Status add(int fd, uint32_t events, Pollable& who);
  // Once more, of a descriptor that was added with EPOLLONESHOT: also what has happened since then. Any thread.
  void rearm(int fd, uint32_t events, const Pollable& who);
  // After it returns, `who` is not called any more (unless the caller is itself inside onEvents). The descriptor is
  // still open.
  void remove(int fd, Pollable& who);
  // Runs `change` while no handler runs: for what handlers use without a lock of their own.
  template <class Change>
  void settle(Change&& change) {
    std::lock_guard lock(mutex_);
    change();
  }

 private:
  Proxy() = default;
  Status start();
  void run();

  Descriptor epoll_;
  Descriptor wake_;
  // Held while events are handled; recursive, because a handler adds and removes.
  std::recursive_mutex mutex_;
  std::map<uint64_t, Pollable*>
      watched_;  // by the number given to epoll: a descriptor's number may be reused while an event is under way
  uint64_t lastNumber_ = 0;
  std::thread thread_;
};

}  // namespace ncclrun
