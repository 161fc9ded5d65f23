// The socket backend: messages over one or several TCP sockets per connection. With helper threads, the first socket
// belongs to the caller and carries small messages at once; helpers carry large ones over the others, chunk by chunk,
// over whichever has room.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "net/net.h"
#include "net/socket/address.h"
#include "net/socket/helper_thread.h"
#include "net/socket/wire.h"

namespace ncclrun::net {

struct SocketDevice {
  std::string interface;  // "eth0"; may be empty
  std::string address;    // of that interface: the source of every connection from here
  uint32_t speedMbps = 10'000;
  std::string pciPath = {};
};

// "10.0.0.1 (eth0)"
std::string describeDevice(const SocketDevice& device);

struct SocketConfig {
  std::vector<SocketDevice> devices;
  Token token = {};         // of the communicator: who does not know it is not let in
  uint32_t sockets = 1;     // per connection that this side makes, 1 to kMaxSockets; with helpers, one more
  uint32_t helpers = 0;     // of the process's threads; 0: the caller moves everything
  int sendBufferBytes = 0;  // 0: the kernel adapts it
  int receiveBufferBytes = 0;
  // The caller calls clearEvents() before every round of calls, so a socket that has been found empty is read again
  // only after an event: one call of the system for all of them instead of one for each.
  bool clearsEvents = false;
};

class Acceptor;

class SocketNetwork final : public Network {
 public:
  static Status make(SocketConfig config, std::unique_ptr<SocketNetwork>& out);
  // Waits, for a fraction of a second at most, for what closeDelivered() could not close.
  ~SocketNetwork() override;

  const std::string& name() const override { return name_; }
  std::span<const Device> devices() const override { return devices_; }
  bool threadBound() const override { return false; }
  bool deliversAfterClose() const override { return true; }
  bool carriesPieces() const override { return true; }
  void pair(Sender& sender, Receiver& receiver) override;
  Status listen(uint32_t device, Handle& handle, std::unique_ptr<Listener>& out) override;
  Status connect(uint32_t device, const Handle& handle, std::unique_ptr<Connector>& out) override;
  int eventDescriptor() const override { return epoll_.get(); }
  bool clearEvents() override;

  // For the objects of this backend.
  const SocketConfig& config() const { return config_; }
  const Address& address(uint32_t device) const { return addresses_[device]; }
  uint32_t socketsPerConnection() const { return config_.sockets + (config_.helpers > 0 ? 1 : 0); }
  // The helper of a connection's socket; null: the caller moves it. helperOffset: the connection's, so that the helpers
  // share connections that have fewer sockets than there are helpers.
  Helper* helperOf(uint32_t socket, uint32_t helperOffset);
  // Of a connection that is about to be made: in the order of listen() and connect(), not in that in which they are
  // complete, and those of the two directions apart, so that every helper has as much to send and to receive.
  uint32_t nextHelperOffset(bool sends);
  // The event descriptor reports this descriptor's edges from now on; until it is closed.
  Status watch(int descriptor, bool edgeTriggered = true);
  void unwatch(int descriptor);
  // False: clearEvents() has seen no event of this watched descriptor since the last call.
  bool takeEvent(int descriptor);
  // Whoever listens on it is told of its events, until releaseAcceptor().
  Status retainAcceptor(const Acceptor& acceptor);
  void releaseAcceptor(const Acceptor& acceptor);
  // The event descriptor becomes readable: something was completed, or is left to do.
  void notify();
  // Closes a socket over which both directions went. What nobody has read here makes the kernel reset a connection, and
  // drop what the other side has not got: so it stays open until the other side has acknowledged everything.
  void closeDelivered(Descriptor descriptor);
  // Options of every socket of a connection.
  void prepare(int descriptor) const;

 private:
  explicit SocketNetwork(SocketConfig config)
      : config_(std::move(config)), events_(config_.clearsEvents ? kMaxEvents : 0) {}
  Status start();

  const std::string name_ = "Socket";
  const SocketConfig config_;
  std::vector<Device> devices_;
  std::vector<Address> addresses_;
  Descriptor epoll_, wake_;
  static constexpr size_t kMaxEvents = 65'536;
  std::vector<std::atomic<bool>> events_;  // by descriptor; of a greater one nothing is known
  std::vector<std::unique_ptr<Helper>> helpers_;
  std::atomic<uint32_t> senders_{0}, receivers_{0};
  std::mutex mutex_;
  std::map<const Acceptor*, uint32_t> acceptors_;  // watched, with how many listeners here use them
  std::vector<Descriptor> undelivered_;            // of closeDelivered()
};

}  // namespace ncclrun::net
