// An open adapter of the process: its context, protection domain and registered memory, shared by all connections over
// its ports; and a thread that learns what happens to it.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/descriptor.h"
#include "base/error.h"
#include "dl/verbs.h"
#include "net/net.h"
#include "net/verbs/registrations.h"

namespace ncclrun::net {

class Card {
 public:
  // The process's one of that name; opened at the first call.
  static Status open(const std::string& name, std::shared_ptr<Card>& out);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  const std::string& name() const { return name_; }
  const verbs::Library& library() const { return library_; }
  verbs::Context* context() const { return context_; }
  verbs::ProtectionDomain* domain() const { return domain_; }
  const verbs::DeviceAttributes& attributes() const { return attributes_; }
  Registrations& registrations() { return *registrations_; }
  // Asks the device; all zero where it does not answer.
  verbs::PortAttributes port(uint8_t port) const;
  // Of a GID of the port, as text; -1: it has none of these. The index may change while the port is down.
  int gidIndex(uint8_t port, const verbs::Gid& gid) const;

  // The kernel and the card register memory by dma-bufs.
  bool hasDmaBuf() const;
  // Why connections over this port cannot go on, in words; empty: they can.
  std::string defect(uint8_t port) const;
  // It will not come back, unlike a port.
  bool isDead() const { return isDead_.load(std::memory_order_acquire); }
  // Calls `notify`, on any thread, after each event; until unsubscribe() has returned.
  uint64_t subscribe(std::function<void()> notify);
  void unsubscribe(uint64_t number);

 private:
  explicit Card(std::string name, const verbs::Library& library) : name_(std::move(name)), library_(library) {}
  Status start();
  void watchEvents();
  void took(const verbs::AsyncEvent& event);

  const std::string name_;
  const verbs::Library& library_;
  verbs::Context* context_ = nullptr;
  verbs::ProtectionDomain* domain_ = nullptr;
  verbs::DeviceAttributes attributes_ = {};
  std::unique_ptr<Registrations> registrations_;
  std::array<std::atomic<bool>, 256> isDown_ = {};  // by port
  std::atomic<bool> isDead_{false};
  std::mutex mutex_;  // of what follows
  std::map<uint64_t, std::function<void()>> subscribers_;
  uint64_t nextSubscriber_ = 0;
  Descriptor stop_;
  std::thread thread_;
};

}  // namespace ncclrun::net
