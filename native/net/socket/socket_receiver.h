// The receiving side of a connection of the socket backend.
#pragma once
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "net/net.h"
#include "net/socket/acceptor.h"
#include "net/socket/connection_state.h"

namespace ncclrun::net {

class SocketReceiver final : public Receiver {
 public:
  static constexpr uint32_t kMaxReceives = 8;

  static Status make(SocketNetwork& network, uint32_t device, uint32_t helperOffset,
                     std::vector<AcceptedSocket> sockets, std::unique_ptr<SocketReceiver>& out);
  ~SocketReceiver() override;

  // For SocketNetwork::pair().
  uint64_t number() const { return number_; }
  // Null: the messages come over several sockets, and none can be shared.
  std::shared_ptr<ConnectionSocket> sharableSocket() const;
  // The other side may turn to that socket.
  void receiveOver(std::shared_ptr<ConnectionSocket> socket);

  Status registerMemory(const Region& region, Registration& out) override { return registerForSockets(region, out); }
  Status deregisterMemory(Registration) override { return {}; }
  Status irecv(std::span<const Buffer> group, Request*& out) override;
  bool redirect(Request* request, const Scatter& scatter) override;
  Status iflush(std::span<const Buffer> group, Request*& out) override;
  Status test(Request* request, bool& done, std::span<size_t> sizes) override;

 private:
  static constexpr uint32_t kRequests = 256;
  static constexpr uint32_t kMessages = kRequests * kMaxReceives;
  // What one call moves over a socket before others have their turn.
  static constexpr size_t kBytesPerCall = 8u << 20;
  // Reads of at most so many bytes are quick if so many of them take no longer than this.
  static constexpr size_t kSmallRead = 1024;
  static constexpr uint32_t kQuickReads = 16;
  static constexpr std::chrono::milliseconds kQuickTime{1};

  // The messages of one irecv.
  struct Group {
    std::array<Buffer, kMaxReceives> buffers;
    std::array<size_t, kMaxReceives> sizes;  // of the message in each buffer; kUnbound before its first chunk
    std::array<size_t, kMaxReceives> left;   // bytes to come for each buffer, and 1 until its first chunk is through
    uint32_t count = 0;
    uint32_t first = 0;                          // sequence of its first message
    std::array<uint8_t, kMaxReceives> bufferOf;  // by the message's place behind `first`
    uint32_t bound = 0;                          // messages that have a buffer
    uint32_t complete = 0;                       // messages
    std::atomic<bool> done = false;
    bool active = false;
  };
  static constexpr size_t kUnbound = ~size_t(0);

  struct Target {
    Group* group = nullptr;
    uint32_t buffer = 0;
  };
  enum class Binding { bound, waits, failed };
  // Where the rest of a chunk goes: first the one, then the other.
  struct Places {
    std::array<iovec, 2> vectors = {};

    size_t bytes() const { return vectors[0].iov_len + vectors[1].iov_len; }
    // So many bytes of it have come.
    void skip(size_t count);
  };

  class Task final : public SocketTask {
   public:
    Task(SocketReceiver& receiver, SocketNetwork& network, Descriptor socket, Helper* helper)
        : SocketTask(network, std::move(socket), helper), receiver_(receiver) {
      sources_[0].socket = socket_;
    }
    ~Task() { stop(); }
    void advance() override;
    void receiveOver(std::shared_ptr<ConnectionSocket> socket) { sources_[1].socket = std::move(socket); }

   private:
    // What has been read from a socket and belongs to no chunk that is under way.
    struct Source {
      std::shared_ptr<ConnectionSocket> socket;  // null: there is none
      bool drained = false;                      // the last read has left nothing in the socket, or found nothing
      size_t begin = 0, end = 0;                 // of what is staged
      std::array<std::byte, 4096> staged;

      size_t bytes() const { return end - begin; }
    };
    Source& source() { return sources_[turns_ % sources_.size()]; }

    // True: a chunk is under way.
    bool beginChunk();
    // The header is an offer or a turn, and done with.
    bool takeNotice();
    void takeStaged();
    // Reads the rest of the chunk, and what follows it, without blocking; false: nothing more is there.
    bool read();
    // The call of the system for that, where a chunk is under way: `room` bytes may follow it.
    ssize_t readRest(size_t room);
    // After a read of a few bytes. Where such follow each other quickly, an acknowledgement of each would cost both
    // sides as much as the message: the kernel may join them. It leaves that mode by itself after a pause of 40 ms.
    void joinAcknowledgements();
    // The other side sends nothing more here: in order, or not.
    void closed();
    void lost(const std::string& why);

    SocketReceiver& receiver_;
    Target target_;
    ChunkHeader header_ = {};
    Places rest_;  // of the chunk
    bool chunk_ = false;
    bool over_ = false;
    uint32_t smallReads_ = 0;  // since `smallSince_`
    std::chrono::steady_clock::time_point smallSince_;
    // Its own, and that of the other direction; `turns_` tells which one the other side sends over.
    std::array<Source, 2> sources_;
    uint32_t turns_ = 0;
  };

  SocketReceiver(SocketNetwork& network, std::string where, uint64_t number)
      : network_(network), failure_(std::move(where)), number_(number) {}
  // Why the connection has failed. The caller may free the memory of its requests then.
  Status failed();
  // The buffer for a chunk. waits: no receive is posted for it, or an earlier message of its group has not begun.
  Binding bind(const ChunkHeader& header, Target& target, Places& into);
  static Places placesOf(const Buffer& buffer, const ChunkHeader& header);
  void completed(const Target& target, const ChunkHeader& header, bool byHelper);
  // One socket of the connection was closed between two chunks; the others may still bring what was sent.
  void socketClosed();
  // Whoever has a chunk that waited tries again; false: nobody has.
  bool retryWaiting();

  SocketNetwork& network_;
  ConnectionFailure failure_;
  const uint64_t number_;
  SocketTasks<Task> tasks_;

  std::mutex mutex_;  // of what follows
  std::array<Group, kRequests> groups_;
  std::array<uint16_t, kMessages> groupOf_ = {};  // by sequence modulo kMessages
  uint32_t nextGroup_ = 0;
  uint32_t posted_ = 0;  // messages that irecv has posted
  size_t closedSockets_ = 0;
  bool chunkWaits_ = false;  // a socket has a chunk that bind() has not taken
};

}  // namespace ncclrun::net
