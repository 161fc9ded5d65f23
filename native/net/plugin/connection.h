// One side of a connection over a plugin.
#pragma once
#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "net/net.h"
#include "net/plugin/plugin.h"

namespace ncclrun::net::plugin {

// What a plugin calls a comm, with the requests that it has under way. Closes it at the end.
class Comm {
 public:
  Comm(Plugin& plugin, const Device& device, void* comm, bool sends);
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  Status registerMemory(const Region& region, Registration& out);
  Status deregisterMemory(Registration registration);
  Status isend(const void* data, size_t bytes, int tag, Registration registration, Request*& out);
  Status irecv(std::span<const Buffer> group, Request*& out);
  Status iflush(std::span<const Buffer> group, Request*& out);
  Status test(Request* request, bool& done, std::span<size_t> sizes);

 private:
  // A request of the plugin. What net.h calls a Request is the address of one of these.
  struct Pending {
    void* request = nullptr;
    int count = 0;
    std::array<size_t, kMaxReceives> capacities{};
    bool isFlush = false;
  };
  // In the order in which they were posted. Flushes follow receives that are complete, so they do not wait for those
  // that are not.
  std::deque<Pending*>& orderOf(const Pending& pending) { return pending.isFlush ? flushes_ : transfers_; }
  // True if the plugin has as many requests of this connection as it promises to take.
  bool isFull() const;
  Pending& take();
  Status posted(const char* call, int code, Pending& pending, Request*& out);
  Status completed(const Pending& pending, std::span<const int> reported, std::span<size_t> sizes);
  Status dead(Status status);

  Plugin& plugin_;
  const Device& device_;
  void* const comm_;
  const bool sends_;
  Status refused_;           // an error of a call that posts: nothing more is posted, what is under way may complete
  Status dead_;              // an error of a transfer: nothing but closing is allowed afterwards
  std::deque<Pending> all_;  // stay where they are
  std::vector<Pending*> unused_;
  std::deque<Pending*> transfers_, flushes_;
};

std::unique_ptr<Sender> makeSender(Plugin& plugin, const Device& device, void* comm);
std::unique_ptr<Receiver> makeReceiver(Plugin& plugin, const Device& device, void* comm);

}  // namespace ncclrun::net::plugin
