#include "aggregator/frame_reader.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ncclrun::aggregator {

void FrameReader::takePayload() {
  const size_t bytes = std::min(left_, end_ - begin_);
  if (bytes == 0) return;
  std::memcpy(into_, ahead_.data() + begin_, bytes);
  begin_ += bytes;
  into_ += bytes;
  left_ -= bytes;
}

// Into what is left of the payload, and ahead behind it.
FrameReader::Got FrameReader::receive(int socket) {
  if (std::exchange(isDrained_, false)) return Got::nothing;
  std::memmove(ahead_.data(), ahead_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  std::array<iovec, 2> parts;
  size_t count = 0;
  if (left_ > 0) parts[count++] = {into_, left_};
  parts[count++] = {ahead_.data() + end_, ahead_.size() - end_};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Got::nothing;
  if (got <= 0) {
    error_ = got == 0 ? 0 : errno;
    return Got::closed;
  }
  isDrained_ = size_t(got) < left_ + ahead_.size() - end_;
  const size_t ofPayload = std::min(left_, size_t(got));
  into_ += ofPayload;
  left_ -= ofPayload;
  end_ += size_t(got) - ofPayload;
  return Got::something;
}

FrameReader::Step FrameReader::step(int socket, bool receives) {
  const bool hadPayload = left_ > 0;
  if (hadPayload) takePayload();
  while (hadPayload ? left_ > 0 : end_ - begin_ < sizeof header_) {
    const Got got = receives ? receive(socket) : Got::nothing;
    if (got != Got::something) return got == Got::nothing ? Step::nothing : Step::closed;
  }
  if (hadPayload) return Step::payload;
  std::memcpy(&header_, ahead_.data() + begin_, sizeof header_);
  begin_ += sizeof header_;
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
