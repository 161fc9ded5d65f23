// The verbs backend: messages by RDMA over InfiniBand or RoCE. Each message is written straight into the buffer that
// the receiver has advertised, and announced by the immediate of the last write.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/socket/socket_network.h"
#include "net/verbs/card.h"
#include "net/verbs/tuning.h"

namespace ncclrun::net {

// Name of the backend, as in NCCL_NET.
inline constexpr const char* kVerbsNetwork = "IB";

struct VerbsPort {
  std::string card;  // "mlx5_0"
  uint8_t port = 1;
  std::string gid;  // by which it is reached: "fe80::1", "::ffff:10.0.0.1"
  uint32_t speedMbps = 10'000;
  std::string pciPath = {};
};

struct VerbsConfig {
  std::vector<VerbsPort> ports;
  std::string address;  // of this host: connections are introduced by sockets from it
  Token token = {};     // of the communicator
  VerbsTuning tuning = {};
};

class VerbsNetwork final : public Network {
 public:
  static Status make(VerbsConfig config, std::unique_ptr<VerbsNetwork>& out);
  ~VerbsNetwork() override;

  const std::string& name() const override { return name_; }
  std::span<const Device> devices() const override { return devices_; }
  bool threadBound() const override { return false; }
  bool deliversAfterClose() const override { return true; }
  Status listen(uint32_t device, Handle& handle, std::unique_ptr<Listener>& out) override;
  Status connect(uint32_t device, const Handle& handle, std::unique_ptr<Connector>& out) override;
  int eventDescriptor() const override { return sockets_->eventDescriptor(); }
  bool clearEvents() override;

  // For the objects of this backend.
  const VerbsConfig& config() const { return config_; }
  const VerbsPort& port(uint32_t device) const { return config_.ports[device]; }
  const verbs::Gid& gid(uint32_t device) const { return gids_[device]; }
  const std::shared_ptr<Card>& card(uint32_t device) const { return cards_[device]; }
  SocketNetwork& sockets() { return *sockets_; }
  // "mlx5_0 port 1, GID fe80::1"
  std::string describe(uint32_t device) const;
  // Grows with every clearEvents() that has found something.
  uint64_t eventsSeen() const { return eventsSeen_.load(std::memory_order_acquire); }
  // Its completions are events of this network. Null with errno set.
  verbs::CompletionQueue* createCompletionQueue(uint32_t device, uint32_t entries);
  void destroyCompletionQueue(uint32_t device, verbs::CompletionQueue* queue);

 private:
  explicit VerbsNetwork(VerbsConfig config) : config_(std::move(config)) {}
  Status start();
  Status openPort(const VerbsPort& port);

  const std::string name_ = kVerbsNetwork;
  const VerbsConfig config_;
  std::vector<Device> devices_;
  std::vector<verbs::Gid> gids_;
  std::unique_ptr<SocketNetwork> sockets_;
  std::vector<std::shared_ptr<Card>> cards_;  // by device
  struct Channel {
    std::shared_ptr<Card> card;
    verbs::CompletionChannel* channel;
    uint64_t subscription;
  };
  std::vector<Channel> channels_;  // one for each card
  std::vector<size_t> channelOf_;  // by device
  std::atomic<uint64_t> eventsSeen_{0};
  std::mutex mutex_;  // of completion queues and their events
};

}  // namespace ncclrun::net
