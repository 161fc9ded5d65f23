// The interface of a network backend: sockets, verbs, and plugins behind one set of calls, with the semantics of NCCL's
// network plugins (ncclNet), so that a plugin needs only a thin adapter. One conformance suite serves every backend
// (test/net/conformance.h).
//
// No call blocks. A call that cannot go on returns success and leaves its result null; the caller repeats it with the
// same arguments. Whoever connects and whoever accepts must both be polled: neither completes without the other.
//
// Threads: a Network serves calls from several threads at once. Listener, Connector, Sender and Receiver serve one
// thread at a time; where Network::threadBound() is true, always the same one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"

namespace ncclrun::net {

// One port of one adapter.
struct Device {
  std::string name;     // "eth0", "mlx5_0"
  std::string pciPath;  // real path in /sys; empty for a device that is not on the PCI bus
  uint64_t guid = 0;    // ports of one card share it, and with it the card's bandwidth
  uint32_t port = 0;
  uint32_t speedMbps = 10'000;
  float latencyUs = 0;  // 0: unknown
  uint32_t maxConnections = 65'536;
  uint32_t maxReceives = 1;                         // buffers of one irecv
  uint64_t maxMessageBytes = uint64_t(1) << 30;     // of one isend
  uint64_t maxCollectiveBytes = uint64_t(1) << 29;  // of one call on a group (collective_network.h)
  bool deviceMemory = false;                        // registers GPU memory (GPUDirect)
  bool dmaBuf = false;                              // registers GPU memory by a dma-buf
  bool globalRegistrations = false;                 // a registration serves all connections of the device
  bool forceFlush = false;                          // receives into GPU memory always need a flush
};

// Opaque address of a listener. Engines exchange it among themselves.
inline constexpr size_t kHandleBytes = 128;
using Handle = std::array<std::byte, kHandleBytes>;

enum class MemoryType : int { host = 1, device = 2 };

// Memory to register. dmaBufDescriptor >= 0: through this dma-buf, at `dmaBufOffset` in it; the caller may close the
// descriptor when the call has returned.
struct Region {
  void* address = nullptr;
  size_t bytes = 0;
  MemoryType type = MemoryType::host;
  int dmaBufDescriptor = -1;
  uint64_t dmaBufOffset = 0;
};

// A backend's own handle of a registered region; null is a valid one.
struct Registration {
  void* opaque = nullptr;
};

// A backend's own record of a transfer under way. Belongs to the connection that made it; test() releases it when it
// reports completion or an error.
struct Request;

// Where the message of a receive arrives if it has exactly headBytes + bodyBytes: its head at the buffer's address, the
// rest here. body null: nowhere else.
struct Scatter {
  std::byte* body = nullptr;
  size_t headBytes = 0;
  size_t bodyBytes = 0;
};

// One buffer of a receive: the message of tag `tag` arrives in it.
struct Buffer {
  void* address = nullptr;
  size_t bytes = 0;  // capacity: the message may be smaller, not larger
  int tag = 0;
  Registration registration = {};
  Scatter scatter = {};  // of a network that carries pieces
};

// A message to be sent that lies in two places, one behind the other on the wire.
struct Pieces {
  const void* head = nullptr;
  size_t headBytes = 0;
  const void* body = nullptr;
  size_t bodyBytes = 0;
};

// What a network knows of the way to the other side.
struct Traffic {
  uint64_t bytes = 0;            // that the other side has acknowledged
  uint64_t busyNanoseconds = 0;  // while something waited for that, and the other side had room
  uint32_t retransmits = 0;      // packets that were sent again
};

// What both sides of a connection can do. Destroying one closes it, with whatever requests it has under way.
class Connection {
 public:
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  virtual Status registerMemory(const Region& region, Registration& out) = 0;
  virtual Status deregisterMemory(Registration registration) = 0;

  // Moves what can be moved. done: the request is complete, and no longer valid. sizes: the bytes of each message of
  // the request; may be empty, else one for a send, and as many as the group has for a receive. An error concerns the
  // connection: only destroying it is allowed afterwards, and the backend touches no memory of requests any more.
  // Requests of one connection are tested in the order in which they were made.
  virtual Status test(Request* request, bool& done, std::span<size_t> sizes) = 0;

 protected:
  Connection() = default;
};

class Sender : public Connection {
 public:
  // Sends `bytes` (0 is legal) from `data`, which must not change before test() reports completion. `out` null: not
  // now.
  virtual Status isend(const void* data, size_t bytes, int tag, Registration registration, Request*& out) = 0;
  // The same for a message in two places. Where Network::carriesPieces() alone.
  virtual Status isendPieces(const Pieces& message, int tag, Request*& out);
  // None: the network does not know. A call of the system for each socket.
  virtual std::optional<Traffic> traffic() const { return {}; }
};

class Receiver : public Connection {
 public:
  // Receives one message into each buffer of `group` (1 to Device::maxReceives), by tag. Groups are filled in the order
  // in which they are posted. `out` null: not now.
  virtual Status irecv(std::span<const Buffer> group, Request*& out) = 0;
  // Changes where the message of a receive of one buffer arrives; false: it has begun to arrive. Where
  // Network::carriesPieces() alone.
  virtual bool redirect(Request*, const Scatter&) { return false; }
  // After a receive into GPU memory, before the GPU reads it: makes the data visible there. `out` null: it is already.
  virtual Status iflush(std::span<const Buffer> group, Request*& out) = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // `out` null: nobody has connected yet. May be called again for the next connection.
  virtual Status accept(std::unique_ptr<Receiver>& out) = 0;
};

// A connection that is being made.
class Connector {
 public:
  virtual ~Connector() = default;
  // `out` null: the other side has not accepted yet. Not to be called again once it has set `out` or failed.
  virtual Status connect(std::unique_ptr<Sender>& out) = 0;
};

class CollectiveNetwork;  // collective_network.h

// A backend, as one communicator uses it. Outlives what it makes.
class Network {
 public:
  virtual ~Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // "Socket", "IB", or a plugin's own name: what NCCL_NET selects.
  virtual const std::string& name() const = 0;
  virtual std::span<const Device> devices() const = 0;
  // Each object is used by one thread alone, from its first call to its last.
  virtual bool threadBound() const = 0;
  // What a completed isend has sent arrives even if the sender closes the connection at once.
  virtual bool deliversAfterClose() const = 0;
  // Messages may lie in two places, in memory that is not registered.
  virtual bool carriesPieces() const { return false; }

  // Listens on a device (an index into devices()); `handle` is what connect() needs on the other side.
  virtual Status listen(uint32_t device, Handle& handle, std::unique_ptr<Listener>& out) = 0;
  virtual Status connect(uint32_t device, const Handle& handle, std::unique_ptr<Connector>& out) = 0;

  // These two are of both directions between this process and one other, which calls this for the same two: the network
  // may carry their messages together. They stay independent, except that a sender may not fail before both of the
  // other side are destroyed. Nobody uses either meanwhile.
  virtual void pair(Sender&, Receiver&) {}

  // The collective network that comes with this one, in `out`, for the same communicator; null: there is none. An
  // error: it cannot be used on this host. All ranks must agree before one of them uses it.
  virtual Status makeCollective(std::unique_ptr<CollectiveNetwork>& out);

  // A descriptor that becomes readable when a call on one of this Network's objects may make progress; -1: the backend
  // has none, its objects must be polled. clearEvents() precedes the calls that the readable descriptor asks for;
  // false: there are none.
  virtual int eventDescriptor() const { return -1; }
  virtual bool clearEvents() { return true; }

 protected:
  Network() = default;
};

}  // namespace ncclrun::net
