#include "net/oob/oob_socket.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"

namespace ncclrun::net {

OobSocket::OobSocket(Descriptor socket, uint32_t peer)
    : socket_(std::move(socket)), peer_(peer), lastReceived_(nowNanoseconds()), lastSent_(lastReceived_) {}

bool OobSocket::send() {
  while (!unsent_.empty()) {
    const char* const from = reinterpret_cast<const char*>(&unsent_.front()) + sent_;
    const ssize_t sent = ::send(socket_.get(), from, sizeof(OobMessage) - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    lastSent_ = nowNanoseconds();
    sent_ += size_t(sent);
    if (sent_ < sizeof(OobMessage)) continue;
    sent_ = 0;
    unsent_.pop_front();
  }
  return true;
}

bool OobSocket::isUnacknowledgedFor(uint64_t nanoseconds) const {
  tcp_info info{};
  socklen_t length = sizeof info;
  int queued = 0;  // bytes that the other host has not acknowledged, sent or not
  if (getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      ioctl(socket_.get(), SIOCOUTQ, &queued) != 0)
    return false;
  return (queued > 0 || !unsent_.empty()) && info.tcpi_last_ack_recv > nanoseconds / 1'000'000;
}

bool OobSocket::accept(const OobMessage& message, uint32_t ranks) {
  if (message.from >= ranks || message.kind < OobKind::introduction || message.kind > kLastOobKind) return false;
  if (peer_ == kUnknown && message.kind == OobKind::introduction) peer_ = message.from;
  return message.from == peer_;
}

bool OobSocket::receive(uint32_t ranks, std::vector<OobMessage>& out, std::string& why) {
  for (;;) {
    char* const into = reinterpret_cast<char*>(&incoming_) + received_;
    const ssize_t got = recv(socket_.get(), into, sizeof incoming_ - received_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got <= 0) {
      why = got == 0 ? "it has closed the connection, or its process has ended" : std::strerror(errno);
      return false;
    }
    lastReceived_ = nowNanoseconds();
    received_ += size_t(got);
    if (received_ < sizeof incoming_) continue;
    received_ = 0;
    incoming_.network.back() = incoming_.sentence.back() = '\0';
    if (!accept(incoming_, ranks)) {
      why = "it sends what this protocol does not have";
      return false;
    }
    if (incoming_.kind == OobKind::introduction) peerTimeout_ = incoming_.timeoutNanoseconds;
    if (incoming_.kind == OobKind::heartbeat) isPeerTraced_ = incoming_.isTraced != 0;
    out.push_back(incoming_);
  }
}

}  // namespace ncclrun::net
