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
  static Status make(SocketNetwork& network, uint32_t device, uint32_t helperOffset, std::vector<Descriptor> sockets,
                     const std::string& peer, std::unique_ptr<SocketSender>& out);
  ~SocketSender() override;

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
    Message* message = nullptr;  // null: none under way
    ChunkHeader header = {};
    size_t sent = 0;  // bytes of header and payload
  };
  class Task final : public SocketTask {
   public:
    Task(SocketSender& sender, SocketNetwork& network, Descriptor socket, Helper* helper)
        : SocketTask(network, std::move(socket), helper), sender_(sender) {}
    ~Task() { stop(); }
    void advance() override;
    int socket() const { return socket_.get(); }

   private:
    // What is left of the chunk, as far as the socket takes it: the result of send().
    ssize_t write();

    SocketSender& sender_;
    Chunk chunk_;
  };

  SocketSender(SocketNetwork& network, std::string where) : network_(network), failure_(std::move(where)) {}
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
  SocketTasks<Task> tasks_;

  std::mutex mutex_;  // of what follows
  std::array<Message, kRequests> messages_;
  uint32_t next_ = 0;                        // sequence of the next message
  std::array<uint32_t, 2> unsent_ = {0, 0};  // first message with chunks to hand out: of helpers, inline
};

}  // namespace ncclrun::net
