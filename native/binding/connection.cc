#include "binding/connection.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

namespace ncclrun::binding {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int kReads = 16;  // in a row: who writes without end does not keep the thread from what it is told to do
constexpr size_t kStandardErrorBytes = 4096;
// More than credit and rendezvous can ever leave unsent: the other side takes nothing any more.
constexpr size_t kMaxUnsentBytes = 128 << 20;
constexpr size_t kFrameBytes = 128;  // what a frame takes here beside its bytes

// Room for the descriptors of one message, aligned as the kernel wants it.

union Ancillary {
  cmsghdr header;
  char bytes[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

// The line that the bytes begin with, if people can read it.
constexpr size_t kShownBytes = 40;
std::string readableBeginning(const uint8_t* bytes, size_t size) {
  std::string line;
  for (size_t i = 0; i < size && bytes[i] != '\n' && bytes[i] != '\r'; ++i) {
    if (bytes[i] < ' ' || bytes[i] > '~') return "";
    if (line.size() == kShownBytes) return line + "…";
    line.push_back(static_cast<char>(bytes[i]));
  }
  return line;
}

// The first frame of every host: StagingMessage.alive (launcher/remote/staging/protocol.ts), without a payload.
constexpr uint16_t kAlive = 7;
constexpr FrameHeader kFirstFrame = {.payloadBytes = 0,
                                     .version = kFrameVersion,
                                     .kind = static_cast<uint8_t>(FrameKind::staging),
                                     .flags = kAlive,
                                     .subject = 0,
                                     .request = 0};
constexpr size_t kMaxTextBytes = 1 << 20;

std::string describeText(const std::string& line) { return "it sent text, which is no frame: \"" + line + "\""; }

}  // namespace

bool Connection::read() {
  for (int reads = 0; reads < kReads && socket_.valid(); ++reads) {
    const size_t held = incoming_.size();
    incoming_.resize(held + kReadBytes);
    const ssize_t got = ::read(socket_.get(), incoming_.data() + held, kReadBytes);
    const int error = errno;
    incoming_.resize(held + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got > 0) {
      received_ += static_cast<uint64_t>(got);
      if (disconnecting_) incoming_.clear();
      cutFrames();
      if (events_.isFull()) return false;
      continue;
    }
    if (got < 0 && error == EAGAIN) return true;
    if (got < 0 && error == EINTR) continue;
    // A peer that ends without having read all that we sent resets the connection: an end like any other.
    if (got < 0 && error != ECONNRESET) {
      close(std::string("the connection broke: ") + std::strerror(error));
    } else if (skipsText_ && textBytes_ + incoming_.size() > 0) {
      if (textBytes_ == 0) text_ = readableBeginning(incoming_.data(), incoming_.size());
      close(describeText(text_));
    } else if (incoming_.empty()) {
      close("");
    } else {
      close("it ended inside a frame, after " + std::to_string(incoming_.size()) + " bytes of it");
    }
  }
  return !socket_.valid();
}

// True once frames follow. Text has no byte such as kFrameVersion where a frame has it.
bool Connection::cutText() {
  FrameHeader header;
  if (incoming_.size() < sizeof header) return false;
  memcpy(&header, incoming_.data(), sizeof header);
  if (textBytes_ == 0 && header.version == kFrameVersion) {
    skipsText_ = false;
    return true;
  }
  if (textBytes_ == 0) text_ = readableBeginning(incoming_.data(), incoming_.size());
  const void* found = memmem(incoming_.data(), incoming_.size(), &kFirstFrame, sizeof kFirstFrame);
  const size_t text = found == nullptr ? incoming_.size() - (sizeof header - 1)
                                       : static_cast<size_t>(static_cast<const uint8_t*>(found) - incoming_.data());
  textBytes_ += text;
  incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<ptrdiff_t>(text));
  skipsText_ = found == nullptr;
  if (skipsText_ && textBytes_ > kMaxTextBytes) close(describeText(text_));
  return !skipsText_;
}

void Connection::cutFrames() {
  if (skipsText_ && !cutText()) return;
  size_t offset = 0;
  FrameHeader header;
  while (incoming_.size() - offset >= sizeof header) {
    memcpy(&header, incoming_.data() + offset, sizeof header);
    if (header.version != kFrameVersion) {
      const std::string text = readableBeginning(incoming_.data() + offset, incoming_.size() - offset);
      if (!text.empty()) return close(describeText(text));
      return close("it sent bytes that are no frame: version " + std::to_string(header.version) + ", ours is " +
                   std::to_string(kFrameVersion));
    }
    if (header.payloadBytes > maxPayloadBytes_) {
      return close("it sent a frame of " + std::to_string(header.payloadBytes) + " bytes; " +
                   std::to_string(maxPayloadBytes_) + " is the most");
    }
    if (incoming_.size() - offset - sizeof header < header.payloadBytes) break;
    const uint8_t* payload = incoming_.data() + offset + sizeof header;
    events_.add({.type = ServerEvent::Type::frame,
                 .connection = number_,
                 .header = header,
                 .payload = {payload, payload + header.payloadBytes},
                 .text = {}});
    offset += sizeof header + header.payloadBytes;
  }
  incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<ptrdiff_t>(offset));
}

void Connection::readStandardError() {
  char piece[kStandardErrorBytes];
  for (int reads = 0; reads < kReads && standardError_.valid(); ++reads) {
    const ssize_t got = ::read(standardError_.get(), piece, sizeof piece);
    if (got > 0) standardErrorTail_.append(piece, static_cast<size_t>(got));
    if (standardErrorTail_.size() > kStandardErrorBytes)
      standardErrorTail_.erase(0, standardErrorTail_.size() - kStandardErrorBytes);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got == 0 || errno != EAGAIN) standardError_.reset();
    return;
  }
}

uint64_t Connection::arrived() const {
  int unread = 0;
  if (socket_.valid() && ioctl(socket_.get(), FIONREAD, &unread) != 0) unread = 0;
  return received_ + static_cast<uint64_t>(unread);
}

void Connection::died() {
  if (!arrivedAtExit_) arrivedAtExit_ = arrived();
  // Whoever holds its socket now (a child) may write without end: that is not waited for.
  if (!read() && received_ < *arrivedAtExit_) return;
  if (events_.isFull()) return;
  readStandardError();
  standardError_.reset();
  life_.forget();
  reportExit();
  // Whoever holds its socket now is not the process that we let in.
  if (socket_.valid()) close("");
}

// Called on the thread that reaps it, and before: the number cannot be another's already. Children lead a session.
void Connection::kill(bool withProcessGroup) const {
  if (child_ > 0 && life_.known()) ::kill(withProcessGroup ? -child_ : child_, SIGKILL);
}

void Connection::reportExit() {
  int status = -1;
  if (child_ > 0) waitpid(child_, &status, 0);
  events_.add({.type = ServerEvent::Type::died,
               .connection = number_,
               .waitStatus = status,
               .payload = {},
               .text = standardErrorTail_});
}

void Connection::close(const std::string& reason) {
  socket_.reset();
  output_.reset();
  incoming_ = {};
  forgetUnsent();
  if (!disconnecting_) {
    events_.add({.type = ServerEvent::Type::closed, .connection = number_, .payload = {}, .text = reason});
  }
  if (!lifeKnown_) reportExit();
}

void Connection::queue(OutgoingFrame frame) {
  if (!socket_.valid() || disconnecting_) return;
  unsentBytes_ += frame.bytes.size() + kFrameBytes;
  outgoing_.push_back(std::move(frame));
  if (outgoing_.size() == 1) write();
  if (unsentBytes_ > kMaxUnsentBytes)
    close("it takes no more messages: " + std::to_string(unsentBytes_) + " bytes wait");
}

void Connection::write() {
  while (!outgoing_.empty()) {
    if (!sendSome(outgoing_.front())) return;
    if (outgoing_.front().sent < outgoing_.front().bytes.size()) continue;
    unsentBytes_ -= outgoing_.front().bytes.size() + kFrameBytes;
    outgoing_.pop_front();
  }
  if (disconnecting_) close("");
}

void Connection::forgetUnsent() {
  outgoing_.clear();
  unsentBytes_ = 0;
}

// False: the socket takes nothing now, or nothing ever again.
bool Connection::sendSome(OutgoingFrame& frame) {
  iovec piece = {frame.bytes.data() + frame.sent, frame.bytes.size() - frame.sent};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  Ancillary ancillary = {};
  if (frame.sent == 0 && !frame.descriptors.empty()) {
    const size_t bytes = frame.descriptors.size() * sizeof(int);
    message.msg_control = ancillary.bytes;
    message.msg_controllen = CMSG_SPACE(bytes);
    ancillary.header.cmsg_level = SOL_SOCKET;
    ancillary.header.cmsg_type = SCM_RIGHTS;
    ancillary.header.cmsg_len = CMSG_LEN(bytes);
    int* numbers = reinterpret_cast<int*>(CMSG_DATA(&ancillary.header));
    for (size_t i = 0; i < frame.descriptors.size(); ++i) numbers[i] = frame.descriptors[i].get();
  }
  // A pipe without a reader raises SIGPIPE, which this thread blocks.
  const ssize_t sent = output_.valid() ? ::write(output_.get(), piece.iov_base, piece.iov_len)
                                       : sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) {
    frame.sent += static_cast<size_t>(sent);
    frame.descriptors.clear();
    return true;
  }
  if (errno == EINTR) return true;
  // A broken connection may still have something for us to read; its end comes from there.
  if (errno != EAGAIN) {
    forgetUnsent();
    if (disconnecting_) close("");
  }
  return false;
}

void Connection::disconnect() {
  if (!socket_.valid()) return;
  disconnecting_ = true;
  write();
}

}  // namespace ncclrun::binding
