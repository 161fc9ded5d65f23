#include "aggregator/frame_reader.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ncclrun::aggregator {

FrameReader::Step FrameReader::step(int socket) {
  const bool hadPayload = left_ > 0;
  while (hadPayload ? left_ > 0 : nextFilled_ < sizeof next_) {
    std::array<iovec, 2> parts;
    size_t count = 0;
    if (left_ > 0) parts[count++] = {into_, left_};
    // The header behind a payload often comes with it.
    if (nextFilled_ < sizeof next_)
      parts[count++] = {reinterpret_cast<std::byte*>(&next_) + nextFilled_, sizeof next_ - nextFilled_};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Step::nothing;
    if (got <= 0) {
      error_ = got == 0 ? 0 : errno;
      return Step::closed;
    }
    const size_t ofPayload = std::min(left_, size_t(got));
    into_ += ofPayload;
    left_ -= ofPayload;
    nextFilled_ += size_t(got) - ofPayload;
  }
  if (hadPayload) return Step::payload;
  header_ = next_;
  nextFilled_ = 0;
  left_ = header_.bytes;
  return Step::header;
}

std::string FrameReader::whyClosed() const {
  return error_ == 0 ? "it has closed the connection, or its process has ended" : std::strerror(error_);
}

Status failureOf(const FrameHeader& header, std::span<const char> sentence) {
  const bool isKnown = header.result > ncclSuccess && header.result < ncclInProgress;
  return {isKnown ? ncclResult_t(header.result) : ncclInternalError, std::string(sentence.begin(), sentence.end())};
}

}  // namespace ncclrun::aggregator
