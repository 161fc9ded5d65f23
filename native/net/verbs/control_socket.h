// The authenticated socket of a connection over verbs: short messages beside the queue pairs, and by its end the news
// that the other side, or its process, is gone.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/descriptor.h"

namespace ncclrun::net {

enum class ControlKind : uint32_t {
  introduction = 1,  // Introduction
  ready = 2,         // uint32_t: number of the move whose queue pairs receive and send; 0: the first ones
  failed = 3,        // text: why the sender of this has given up the connection
  move = 4,          // Move
};

class ControlSocket {
 public:
  static constexpr size_t kMaxBytes = 2'048;
  explicit ControlSocket(Descriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.get(); }
  // False: the other side is gone. What is sent fits into the socket's buffer: each message is answered before the
  // next.
  bool send(ControlKind kind, std::span<const std::byte> body);

  struct Message {
    ControlKind kind;
    std::span<const std::byte> body;  // valid until the next call
  };
  // A message that has come; nothing: not yet, or isGone().
  std::optional<Message> receive();
  // The other side has closed the socket, or said what nobody of ours says, and all that it had sent is received.
  bool isGone() const { return isGone_; }

 private:
  struct Header {
    uint32_t kind = 0;
    uint32_t bytes = 0;
  };

  const Descriptor socket_;
  Header header_;
  std::array<std::byte, kMaxBytes> body_;
  size_t received_ = 0;  // bytes of header, then of body
  bool isGone_ = false;
};

}  // namespace ncclrun::net
