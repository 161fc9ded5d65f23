#include "net/socket/socket_connector.h"

#include <netinet/tcp.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "net/socket/socket_sender.h"

namespace ncclrun::net {
namespace {

constexpr uint64_t kPause = 50'000'000;  // ns
// A host may come up, or a route change; a port that refuses is nearly always a process that is gone, which its agent
// reports at once.
constexpr uint64_t kUnreachableFor = 20'000'000'000;
constexpr uint64_t kRefusedFor = 3'000'000'000;
constexpr int kSynRetries = 4;  // about half a minute in the kernel; ours ends before

bool mayPass(int error) {
  return error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == ENETDOWN || error == ETIMEDOUT;
}

}  // namespace

SocketConnector::SocketConnector(SocketNetwork& network, uint32_t device, const ListenerAddress& peer)
    : network_(network),
      device_(device),
      helperOffset_(network.nextHelperOffset(true)),
      peer_(peer),
      begunAt_(nowNanoseconds()) {
  attempts_.resize(network.socketsPerConnection());
}

Status SocketConnector::failed(ncclResult_t code, const std::string& why) const {
  const SocketDevice& device = network_.config().devices[device_];
  return {code, "cannot connect to " + peer_.address.textWithPort() + " from " + describeDevice(device) + ": " + why};
}

Status SocketConnector::again(Attempt& attempt, int error) {
  const uint64_t now = nowNanoseconds();
  const uint64_t tried = now - begunAt_;
  if (tried > (mayPass(error) ? kUnreachableFor : kRefusedFor)) {
    const bool isOurs = error == EADDRNOTAVAIL || error == EADDRINUSE;
    return failed(isOurs ? ncclSystemError : ncclRemoteError, std::strerror(error) + portsBehind(error));
  }
  attempt.socket.reset();
  attempt.stage = Stage::start;
  attempt.received = 0;
  attempt.notBefore = now + kPause;
  if (!timer_.valid()) {
    timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (!timer_.valid()) return failed(ncclSystemError, std::string("timerfd_create: ") + std::strerror(errno));
    if (Status status = network_.watch(timer_.get()); !status.ok()) return status;
  }
  const itimerspec once{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = long(kPause)}};
  timerfd_settime(timer_.get(), 0, &once, nullptr);
  return {};
}

Status SocketConnector::begin(Attempt& attempt) {
  if (nowNanoseconds() < attempt.notBefore) return {};
  Address local = network_.address(device_);
  local.setPort(0);
  Address peer = peer_.address;
  if (peer.storage.ss_family != local.storage.ss_family) {
    return failed(ncclInvalidUsage, "one is an IPv4 and the other an IPv6 address");
  }
  // The peer's scope is its own; on this side the way out is this device.
  if (peer.isLinkLocal()) peer.setScope(local.scope());
  attempt.socket.reset(::socket(peer.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!attempt.socket.valid()) {
    const int error = errno;
    return failed(ncclSystemError, std::string("socket: ") + std::strerror(error) + limitBehind(error));
  }
  const int descriptor = attempt.socket.get();
  const int on = 1;
  setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  setsockopt(descriptor, IPPROTO_TCP, TCP_SYNCNT, &kSynRetries, sizeof kSynRetries);
  network_.prepare(descriptor);
  // Behind a translation of addresses the planned one is none of this host's own; the kernel chooses the source then.
  if (::bind(descriptor, local.get(), local.length) != 0 && errno != EADDRNOTAVAIL) {
    return failed(ncclSystemError, "bind: " + std::string(std::strerror(errno)));
  }
  if (Status status = network_.watch(descriptor); !status.ok()) return status;
  attempt.stage = Stage::connecting;
  if (::connect(descriptor, peer.get(), peer.length) == 0 || errno == EINPROGRESS) return {};
  return again(attempt, errno);
}

Status SocketConnector::receiveChallenge(Attempt& attempt) {
  while (attempt.received < sizeof(Challenge)) {
    char* const into = reinterpret_cast<char*>(&attempt.challenge) + attempt.received;
    const ssize_t got = recv(attempt.socket.get(), into, sizeof(Challenge) - attempt.received, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    // It may have had no room for one more, or have been stopped for longer than it gives others.
    if (got <= 0) return again(attempt, got == 0 ? ECONNRESET : errno);
    attempt.received += size_t(got);
  }
  const Token& token = network_.config().token;
  const Nonce& nonce = attempt.challenge.nonce;
  if (!equalDigests(attempt.challenge.proof, proofOf(ProofOf::accept, token, attempt.hello, nonce))) {
    return failed(ncclRemoteError, "authentication failed: what listens there does not belong to this communicator");
  }
  const Sha256Digest proof = proofOf(ProofOf::connect, token, attempt.hello, nonce);
  if (send(attempt.socket.get(), proof.data(), proof.size(), MSG_NOSIGNAL | MSG_DONTWAIT) != ssize_t(proof.size()))
    return again(attempt, errno == EAGAIN ? ECONNRESET : errno);
  attempt.stage = Stage::proved;
  return {};
}

Status SocketConnector::receiveAdmission(Attempt& attempt) {
  uint8_t byte = 0;
  const ssize_t got = recv(attempt.socket.get(), &byte, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return {};
  if (got <= 0) return again(attempt, got == 0 ? ECONNRESET : errno);
  if (byte != kAdmitted) return failed(ncclInternalError, "the other side's answer is not one of this protocol");
  attempt.stage = Stage::connected;
  return {};
}

Status SocketConnector::advance(Attempt& attempt) {
  if (attempt.stage == Stage::start) {
    if (Status status = begin(attempt); !status.ok()) return status;
  }
  if (attempt.stage == Stage::connecting) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return again(attempt, error);
    const ssize_t sent = send(attempt.socket.get(), &attempt.hello, sizeof attempt.hello, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == ENOTCONN || errno == EINTR)) return {};
    if (sent != ssize_t(sizeof attempt.hello)) return again(attempt, sent < 0 ? errno : ECONNRESET);
    attempt.stage = Stage::challenged;
  }
  if (attempt.stage == Stage::challenged) {
    if (Status status = receiveChallenge(attempt); !status.ok()) return status;
  }
  return attempt.stage == Stage::proved ? receiveAdmission(attempt) : Status{};
}

Status SocketConnector::connectSockets(std::vector<Descriptor>& out) {
  out.clear();
  if (attempts_[0].hello.connection == 0) {
    uint64_t connection = 0;
    for (size_t i = 0; i < attempts_.size(); i++) {
      Hello& hello = attempts_[i].hello;
      if ((connection == 0 && !fillRandom(&connection, sizeof connection)) ||
          !fillRandom(hello.nonce.data(), hello.nonce.size()))
        return failed(ncclSystemError, "the system gives no random numbers");
      hello.listener = peer_.listener;
      hello.connection = connection;
      hello.socket = uint16_t(i);
      hello.sockets = uint16_t(attempts_.size());
    }
  }
  bool all = true;
  for (Attempt& attempt : attempts_) {
    if (Status status = advance(attempt); !status.ok()) return status;
    all = all && attempt.stage == Stage::connected;
  }
  if (!all) return {};
  for (Attempt& attempt : attempts_) out.push_back(std::move(attempt.socket));
  return {};
}

Status SocketConnector::connect(std::unique_ptr<Sender>& out) {
  out = nullptr;
  std::vector<Descriptor> sockets;
  NCCLRUN_TRY(connectSockets(sockets));
  if (sockets.empty()) return {};
  std::unique_ptr<SocketSender> sender;
  NCCLRUN_TRY(SocketSender::make(network_,
                                 {.device = device_,
                                  .helperOffset = helperOffset_,
                                  .number = attempts_[0].hello.connection,
                                  .sockets = std::move(sockets),
                                  .peer = peer_.address.textWithPort()},
                                 sender));
  out = std::move(sender);
  return {};
}

}  // namespace ncclrun::net
