#include "guardian/pmi.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace ncclrun::guardian {
namespace {

constexpr size_t kPieceBytes = 16 << 10;
// Taken of a dead rank, which may have written a request before its end.
constexpr int kLastPieces = 16;

}  // namespace

void PmiConnection::serve(Channel& channel) {
  write();
  if (fd_ >= 0 && !isAsked_ && pending_.empty()) sendPiece(channel);
}

void PmiConnection::answer(std::span<const char> bytes, uint16_t flags) {
  if (fd_ < 0) return;
  pending_.append(bytes.data(), bytes.size());
  if ((flags & kPmiRead) != 0) isAsked_ = false;
  if ((flags & kPmiClose) != 0) isClosing_ = true;
  write();
}

void PmiConnection::finish(Channel& channel) {
  for (int piece = 0; fd_ >= 0 && piece < kLastPieces && sendPiece(channel); ++piece) continue;
  close();
}

uint32_t PmiConnection::events() const {
  if (fd_ < 0) return 0;
  if (!pending_.empty()) return EPOLLOUT;
  return isAsked_ ? 0u : EPOLLIN;
}

void PmiConnection::write() {
  while (fd_ >= 0 && !pending_.empty()) {
    const ssize_t wrote = send(fd_, pending_.data(), pending_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote >= 0) {
      pending_.consume(static_cast<size_t>(wrote));
    } else if (errno != EINTR) {
      if (errno == EAGAIN) return;
      // The rank has closed its end. What it wrote before that, perhaps an abort, is still to be read.
      pending_.clear();
    }
  }
  if (isClosing_) close();
}

bool PmiConnection::sendPiece(Channel& channel) {
  for (;;) {
    const ssize_t got = recv(fd_, channel.begin(kPieceBytes), kPieceBytes, MSG_DONTWAIT);
    if (got > 0) {
      isAsked_ = true;
      channel.finish(FrameKind::pmi, 0, rank_, 0, static_cast<size_t>(got));
      return true;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || errno != EAGAIN) close();
    return false;
  }
}

void PmiConnection::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  pending_.clear();
}

}  // namespace ncclrun::guardian
