#include "binding/connection.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

namespace ncclrun::binding {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kRemarksBytes = 4096;

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

}  // namespace

void Connection::read() {
  while (socket_.valid()) {
    const size_t held = incoming_.size();
    incoming_.resize(held + kReadBytes);
    const ssize_t got = ::read(socket_.get(), incoming_.data() + held, kReadBytes);
    const int error = errno;
    incoming_.resize(held + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got > 0) {
      if (disconnecting_) incoming_.clear();
      cutFrames();
      if (events_.tooMany()) return;
      continue;
    }
    if (got < 0 && error == EAGAIN) return;
    if (got < 0 && error == EINTR) continue;
    // A peer that ends without having read all that we sent resets the connection: an end like any other.
    if (got < 0 && error != ECONNRESET) return close(std::string("the connection broke: ") + strerrordesc_np(error));
    if (incoming_.empty()) return close("");
    return close("it ended inside a frame, after " + std::to_string(incoming_.size()) + " bytes of it");
  }
}

void Connection::cutFrames() {
  size_t offset = 0;
  FrameHeader header;
  while (incoming_.size() - offset >= sizeof header) {
    memcpy(&header, incoming_.data() + offset, sizeof header);
    if (header.version != kFrameVersion) {
      const std::string text = readableBeginning(incoming_.data() + offset, incoming_.size() - offset);
      if (!text.empty()) return close("it sent text, which is no frame: \"" + text + "\"");
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

void Connection::readRemarks() {
  char piece[kRemarksBytes];
  while (remarks_.valid()) {
    const ssize_t got = ::read(remarks_.get(), piece, sizeof piece);
    if (got > 0) remarksEnd_.append(piece, static_cast<size_t>(got));
    if (remarksEnd_.size() > kRemarksBytes) remarksEnd_.erase(0, remarksEnd_.size() - kRemarksBytes);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got == 0 || errno != EAGAIN) remarks_.reset();
    return;
  }
}

void Connection::died() {
  read();
  if (events_.tooMany()) return;  // we are called again
  readRemarks();
  remarks_.reset();
  life_.reset();
  tellOfDeath();
  // Whoever holds its socket now (a child) is not the process that we let in.
  if (socket_.valid()) close("");
}

// Called on the thread that reaps it, and before: the number cannot be another's already. Children lead a session.
void Connection::kill(bool withItsOwn) const {
  if (child_ > 0 && life_.valid()) ::kill(withItsOwn ? -child_ : child_, SIGKILL);
}

void Connection::tellOfDeath() {
  int status = -1;
  if (child_ > 0) waitpid(child_, &status, 0);
  events_.add({.type = ServerEvent::Type::died,
               .connection = number_,
               .waitStatus = status,
               .payload = {},
               .text = remarksEnd_});
}

void Connection::close(const std::string& reason) {
  socket_.reset();
  output_.reset();
  incoming_ = {};
  outgoing_.clear();
  if (!disconnecting_) {
    events_.add({.type = ServerEvent::Type::closed, .connection = number_, .payload = {}, .text = reason});
  }
  if (!lifeKnown_) tellOfDeath();
}

void Connection::queue(OutgoingFrame frame) {
  if (!socket_.valid() || disconnecting_) return;
  outgoing_.push_back(std::move(frame));
  if (outgoing_.size() == 1) write();
}

void Connection::write() {
  while (!outgoing_.empty()) {
    if (!sendSome(outgoing_.front())) return;
    if (outgoing_.front().sent == outgoing_.front().bytes.size()) outgoing_.pop_front();
  }
  if (disconnecting_) close("");
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
    outgoing_.clear();
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
