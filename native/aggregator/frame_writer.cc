#include "aggregator/frame_writer.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ncclrun::aggregator {
namespace {

constexpr size_t kFramesPerCall = 8;

}  // namespace

void FrameWriter::queue(const FrameHeader& header, const std::byte* payload, std::shared_ptr<const void> owner) {
  frames_.push_back({header, payload, std::move(owner)});
}

void FrameWriter::clear() {
  frames_.clear();
  written_ = 0;
}

void FrameWriter::written(size_t bytes) {
  written_ += bytes;
  while (!frames_.empty()) {
    const FrameHeader& header = frames_.front().header;
    const size_t frameBytes = sizeof header + header.bytes;
    if (written_ < frameBytes) return;
    written_ -= frameBytes;
    chunksWritten_ += header.kind == FrameKind::result || header.kind == FrameKind::contribution;
    frames_.pop_front();
  }
}

FrameWriter::Flushed FrameWriter::flush(int socket) {
  while (!frames_.empty()) {
    std::array<iovec, 2 * kFramesPerCall> parts;
    size_t count = 0, skipped = written_;
    const auto add = [&](const void* from, size_t bytes) {
      const size_t skips = std::min(skipped, bytes);
      skipped -= skips;
      if (bytes > skips)
        parts[count++] = {const_cast<std::byte*>(static_cast<const std::byte*>(from)) + skips, bytes - skips};
    };
    for (size_t i = 0; i < std::min(frames_.size(), kFramesPerCall); i++) {
      add(&frames_[i].header, sizeof(FrameHeader));
      add(frames_[i].payload, frames_[i].header.bytes);
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Flushed::some;
    if (sent < 0) {
      clear();
      return Flushed::closed;
    }
    written(size_t(sent));
  }
  return Flushed::all;
}

}  // namespace ncclrun::aggregator
