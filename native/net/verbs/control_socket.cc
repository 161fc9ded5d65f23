#include "net/verbs/control_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ncclrun::net {

bool ControlSocket::send(ControlKind kind, std::span<const std::byte> body) {
  std::array<std::byte, sizeof(Header) + kMaxBytes> message;
  const Header header{.kind = uint32_t(kind), .bytes = uint32_t(std::min(body.size(), kMaxBytes))};
  std::memcpy(message.data(), &header, sizeof header);
  std::copy_n(body.begin(), header.bytes, message.begin() + sizeof header);
  const size_t bytes = sizeof header + header.bytes;
  const ssize_t sent = ::send(socket_.get(), message.data(), bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == ssize_t(bytes);
}

std::optional<ControlSocket::Message> ControlSocket::receive() {
  while (!isGone_) {
    const bool isHeader = received_ < sizeof header_;
    const size_t due = isHeader ? sizeof header_ : sizeof header_ + header_.bytes;
    if (!isHeader && received_ == due) {
      received_ = 0;
      return Message{ControlKind(header_.kind), std::span(body_).first(header_.bytes)};
    }
    std::byte* const into =
        isHeader ? reinterpret_cast<std::byte*>(&header_) + received_ : body_.data() + (received_ - sizeof header_);
    const ssize_t got = recv(socket_.get(), into, due - received_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    received_ += got > 0 ? size_t(got) : 0;
    isGone_ = got <= 0 || (received_ == sizeof header_ && header_.bytes > kMaxBytes);
  }
  return {};
}

}  // namespace ncclrun::net
