#include "guardian/input.h"

#include <unistd.h>

#include <cerrno>

namespace ncclrun::guardian {

void InputStream::accept(std::span<const char> bytes, bool end, Channel& channel) {
  if (!open() || ending_) return grant(channel, bytes.size());
  pending_.append(bytes.data(), bytes.size());
  ending_ = end;
  write(channel);
}

void InputStream::write(Channel& channel) {
  uint64_t taken = 0;
  while (waiting()) {
    const ssize_t wrote = ::write(fd_, pending_.data(), pending_.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) close(channel);  // EPIPE: the rank reads no more
      break;
    }
    pending_.consume(static_cast<size_t>(wrote));
    taken += static_cast<uint64_t>(wrote);
  }
  grant(channel, taken);
  if (open() && ending_ && pending_.empty()) close(channel);
}

void InputStream::close(Channel& channel) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  grant(channel, pending_.size());
  pending_.clear();
}

void InputStream::grant(Channel& channel, uint64_t bytes) const {
  if (bytes > 0) channel.send(FrameKind::stdinCredit, 0, rank_, &bytes, sizeof bytes);
}

}  // namespace ncclrun::guardian
