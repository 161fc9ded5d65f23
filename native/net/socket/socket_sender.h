// The sending side of a connection of the socket backend.
#pragma once
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "net/net.h"
#include "net/socket/connection_state.h"

namespace ncclrun::net {

class SocketSender final : public Sender {
 public:
  struct Setup {
    uint32_t device;
    uint32_t helperOffset;
    uint64_t number;                  // of the connection: Hello::connection
    std::vector<Descriptor> sockets;  // by index
    std::string peer;                 // "10.0.0.2 port 40000"
  };
  static Status make(SocketNetwork& network, Setup setup, std::unique_ptr<SocketSender>& out);
  ~SocketSender() override;

  // For SocketNetwork::pair().
  uint64_t number() const { return number_; }
  // Null: several sockets share the messages, and none can be shared.
  std::shared_ptr<ConnectionSocket> sharableSocket() const;
  // Tells the other side that its connection of that number may use this socket too.
  void offerTo(uint64_t number);
  // From the offer on, small messages go over that socket.
  void sendOver(std::shared_ptr<ConnectionSocket> socket);

  Status registerMemory(const Region& region, Registration& out) override { return registerForSockets(region, out); }
  Status deregisterMemory(Registration) override { return {}; }
  Status isend(const void* data, size_t bytes, int tag, Registration, Request*& out) override {
    return isendPieces({.head = data, .headBytes = bytes}, tag, out);
  }
  Status isendPieces(const Pieces& message, int tag, Request*& out) override;
  Status test(Request* request, bool& done, std::span<size_t> sizes) override;
  std::optional<Traffic> traffic() const override;

 private:
  static constexpr uint32_t kRequests = 256;
  // Up to this size the caller's own socket carries a message, where helpers have the others.
  static constexpr size_t kInlineBytes = 65'536;
  // Of a message that several sockets carry.
  static constexpr size_t kSharedChunkBytes = 256 * 1024;
  // What one of several sockets keeps in the kernel beyond what is on its way.
  static constexpr int kUnsentBytes = 128 * 1024;
  // What a helper moves over a socket before others have their turn.
  static constexpr size_t kBytesPerCall = 8u << 20;
  static constexpr size_t kMaxChunkBytes = size_t(1) << 30;
  // Up to this size, copying a chunk takes less time than the system takes for a list of its parts.
  static constexpr size_t kGatheredBytes = 2048;
  // Up to this size a message may go over the socket of the other direction. Large ones both ways hold each other up.
  static constexpr size_t kTogetherBytes = 16'384;
  // After so many small ones, since a turn costs a packet.
  static constexpr uint32_t kSmallMessages = 8;

  struct Message {
    Pieces pieces;
    size_t bytes = 0;  // of both
    int tag = 0;
    uint32_t sequence = 0;
    bool active = false;
    size_t handedOut = 0;          // bytes of chunks that sockets have taken
    std::atomic<size_t> left = 0;  // bytes that no socket has accepted yet, and 1 until the first chunk is through
  };
  struct Chunk {
    Message* message = nullptr;  // null: an offer or a turn
    ChunkHeader header = {};     // no magic: none under way
    size_t sent = 0;             // bytes of header and payload

    bool isUnderWay() const { return header.magic != 0; }
  };
  class Task final : public SocketTask {
   public:
    Task(SocketSender& sender, SocketNetwork& network, Descriptor socket, Helper* helper)
        : SocketTask(network, std::move(socket), helper), sender_(sender) {}
    ~Task();
    void advance() override;
    void offerTo(uint64_t number) { offer_ = number; }
    void sendOver(std::shared_ptr<ConnectionSocket> socket) { other_ = std::move(socket); }
    const std::shared_ptr<ConnectionSocket>& other() const { return other_; }

   private:
    // False: there is none to begin.
    bool beginChunk();
    // What is left of the chunk, as far as the socket takes it: the result of send().
    ssize_t write();
    // Its last byte is sent.
    void endChunk();
    bool goesOverOther(const Message& message);

    SocketSender& sender_;
    Chunk chunk_;
    Chunk next_;                               // behind a turn
    uint64_t offer_ = 0;                       // to be sent; 0: none
    std::shared_ptr<ConnectionSocket> other_;  // of the other direction; null: none
    bool usesOther_ = false;
    uint32_t smallMessages_ = 0;  // since the last large one
  };

  SocketSender(SocketNetwork& network, std::string where, uint64_t number)
      : network_(network), failure_(std::move(where)), number_(number) {}
  // Why the connection has failed. The caller may free the memory of its requests then.
  Status failed();
  bool isInline(const Message& message) const { return !tasks_.hasHelpers() || message.bytes <= kInlineBytes; }
  // Room for up to two vectors in `out`, for the bytes of a message from `offset` on; returns how many it has filled.
  static size_t vectorsOf(const Message& message, size_t offset, size_t bytes, std::span<iovec> out);
  // The next chunk for a socket of the caller's or of a helper's; false: there is none.
  bool takeChunk(bool inlineSocket, Chunk& chunk);
  void completed(Message& message, size_t bytes, bool byHelper);

  SocketNetwork& network_;
  ConnectionFailure failure_;
  const uint64_t number_;
  SocketTasks<Task> tasks_;

  std::mutex mutex_;  // of what follows
  std::array<Message, kRequests> messages_;
  uint32_t next_ = 0;                        // sequence of the next message
  std::array<uint32_t, 2> unsent_ = {0, 0};  // first message with chunks to hand out: of helpers, inline
};

}  // namespace ncclrun::net
