#include "guardian/channel.h"

#include <sys/socket.h>

#include <cerrno>

namespace ncclrun::guardian {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian");

constexpr size_t kReceiveBytes = 64 << 10;

bool Channel::receive() {
  incoming_.consume(understood_);
  understood_ = 0;
  for (;;) {
    const ssize_t got = recv(fd_, incoming_.prepare(kReceiveBytes), kReceiveBytes, MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN;
    }
    incoming_.commit(static_cast<size_t>(got));
    received_ += static_cast<uint64_t>(got);
    if (static_cast<size_t>(got) < kReceiveBytes) return true;
    if (incoming_.size() > kMaxPayloadBytes) return true;  // let next() work before we take in more
  }
}

Channel::Next Channel::next(Frame& out) {
  incoming_.consume(understood_);
  understood_ = 0;
  if (incoming_.size() < sizeof(FrameHeader)) return Next::none;
  memcpy(&out.header, incoming_.data(), sizeof(FrameHeader));
  if (out.header.version != kFrameVersion || out.header.payloadBytes > kMaxPayloadBytes) return Next::garbage;
  if (incoming_.size() - sizeof(FrameHeader) < out.header.payloadBytes) return Next::none;
  out.payload = {incoming_.data() + sizeof(FrameHeader), out.header.payloadBytes};
  understood_ = sizeof(FrameHeader) + out.header.payloadBytes;
  return Next::frame;
}

char* Channel::begin(size_t capacity) {
  return outgoing_.prepare(sizeof(FrameHeader) + capacity) + sizeof(FrameHeader);
}

void Channel::finish(FrameKind kind, uint16_t flags, uint32_t subject, uint32_t request, size_t bytes) {
  const FrameHeader header = {.payloadBytes = static_cast<uint32_t>(bytes),
                              .version = kFrameVersion,
                              .kind = static_cast<uint8_t>(kind),
                              .flags = flags,
                              .subject = subject,
                              .request = request};
  memcpy(outgoing_.prepare(sizeof header + bytes), &header, sizeof header);
  outgoing_.commit(sizeof header + bytes);
}

void Channel::send(FrameKind kind, uint16_t flags, uint32_t subject, const void* payload, size_t bytes) {
  char* room = begin(bytes);
  if (bytes > 0) memcpy(room, payload, bytes);
  finish(kind, flags, subject, 0, bytes);
}

bool Channel::flush() {
  while (!outgoing_.empty()) {
    const ssize_t sent = ::send(fd_, outgoing_.data(), outgoing_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN;
    }
    outgoing_.consume(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace ncclrun::guardian
