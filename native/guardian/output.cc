#include "guardian/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "guardian/clock.h"

namespace ncclrun::guardian {

constexpr uint64_t kReadBytes = 128 << 10;

OutputStream::Read OutputStream::read(Channel& channel, Credit& credit) {
  // We read straight into the frame, behind the place of the line's beginning, which is copied there only if the frame
  // is sent.
  const size_t begun = line_.size();
  const size_t capacity = credit.available() < kReadBytes ? credit.available() : kReadBytes;
  char* payload = channel.begin(capacity);
  const ssize_t got = ::read(fd_, payload + begun, capacity - begun);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Read::nothingYet;

  const size_t fresh = got > 0 ? static_cast<size_t>(got) : 0;
  owed_ -= fresh < owed_ ? fresh : owed_;
  const bool ended = fresh == 0;
  const size_t total = begun + fresh;
  const void* newline = ended ? nullptr : memrchr(payload + begun, '\n', fresh);
  const size_t whole = newline == nullptr ? 0 : static_cast<size_t>(static_cast<const char*>(newline) - payload) + 1;
  const bool longLine = total - whole >= credit.lineLimit();

  const size_t sent = ended || longLine ? total : whole;
  if (sent == 0 && !ended) {
    line_.append(payload + begun, fresh);
    quietSinceMs_ = monotonicMs();
    return Read::some;
  }
  if (begun > 0) memcpy(payload, line_.data(), begun);
  line_.consume(begun);
  line_.append(payload + sent, total - sent);
  quietSinceMs_ = line_.empty() ? 0 : monotonicMs();
  const uint16_t partial = sent > whole ? kOutputPartial : 0;
  sendFrame(channel, credit, partial | (ended ? kOutputEnd : 0), sent);
  if (ended) close();
  return ended ? Read::ended : Read::some;
}

void OutputStream::sendFrame(Channel& channel, Credit& credit, uint16_t flags, size_t bytes) const {
  const uint32_t readAt = static_cast<uint32_t>(realtimeNs() / 1'000'000);
  channel.finish(FrameKind::output, flags | (standardError_ ? kOutputStderr : 0), rank_, readAt, bytes);
  credit.spend(bytes);
}

void OutputStream::writersDied() {
  int left = 0;
  if (open() && ioctl(fd_, FIONREAD, &left) == 0 && left > 0) owed_ = static_cast<uint64_t>(left);
}

bool OutputStream::settle(Channel& channel, Credit& credit) {
  while (open()) {
    if (credit.available() < credit.lineLimit()) return owed_ == 0 && line_.empty();
    const bool owing = owed_ > 0;
    if (read(channel, credit) != Read::some) break;
    if (!owing) break;  // what we read was written later, by somebody who survives
  }
  if (open() && !line_.empty()) sendBegun(channel, credit);
  return true;
}

void OutputStream::sendBegun(Channel& channel, Credit& credit) {
  memcpy(channel.begin(line_.size()), line_.data(), line_.size());
  sendFrame(channel, credit, kOutputPartial, line_.size());
  line_.clear();
}

void OutputStream::finish(Channel& channel, Credit& credit) {
  if (!open()) return;
  channel.begin(0);
  sendFrame(channel, credit, kOutputEnd, 0);
  close();
}

void OutputStream::close() {
  ::close(fd_);
  fd_ = -1;
  line_.clear();
}

}  // namespace ncclrun::guardian
