#include "net/socket/acceptor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "base/port_range.h"

namespace ncclrun::net {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kHelloTimeout = 1'000 * kMillisecond;
constexpr uint64_t kProofTimeout = 5'000 * kMillisecond;  // of one that names a listener of ours
constexpr uint64_t kRetryAfter = 100 * kMillisecond;      // an accept that the system refused
constexpr uint64_t kStarvedAfter = 10'000 * kMillisecond;
constexpr size_t kMaxStrangers = 256;  // of those without a right hello the longest waiting one makes room
constexpr int kBacklog = 16'384;

bool isShortage(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

std::string addressKey(const Address& address) { return address.text(); }

Status failedToListen(const std::string& where, const char* call) {
  const int error = errno;
  return {ncclSystemError,
          "cannot listen on " + where + ": " + call + ": " + std::strerror(error) + listenersBehind(error)};
}

// Every address of the family.
Address wildcard(const Address& like) {
  Address any;
  any.storage.ss_family = like.storage.ss_family;  // all others zero
  any.length = like.length;
  return any;
}

}  // namespace

std::shared_ptr<Acceptor> Acceptor::of(const Address& device, Status& why) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Acceptor>> acceptors;
  std::lock_guard lock(mutex);
  std::weak_ptr<Acceptor>& known = acceptors[addressKey(device)];
  if (auto acceptor = known.lock()) return acceptor;
  std::shared_ptr<Acceptor> acceptor(new Acceptor);
  why = acceptor->listenOn(device);
  if (!why.ok()) return nullptr;
  known = acceptor;
  return acceptor;
}

std::shared_ptr<Acceptor> Acceptor::adopt(Descriptor listening, Status& why) {
  std::shared_ptr<Acceptor> acceptor(new Acceptor);
  acceptor->listening_ = std::move(listening);
  // accept4() below must not block.
  const int flags = fcntl(acceptor->listening_.get(), F_GETFL);
  if (flags < 0 || fcntl(acceptor->listening_.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    why = failedToListen("the socket that was handed over", "fcntl");
    return nullptr;
  }
  why = acceptor->start();
  return why.ok() ? acceptor : nullptr;
}

Acceptor::~Acceptor() = default;

Status Acceptor::listenOn(const Address& device) {
  address_ = device;
  constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  int error = 0;
  listening_ = listenForHosts(address_.storage, address_.length, kFlags, kBacklog, error);
  // Behind a translation of addresses the planned one is none of this host's own.
  const Address any = wildcard(device);
  if (error == EADDRNOTAVAIL) listening_ = listenForHosts(any.storage, any.length, kFlags, kBacklog, error);
  errno = error;
  if (!listening_.valid()) return failedToListen(device.text(), "listen");
  return start();
}

Status Acceptor::start() {
  Address bound;
  bound.length = sizeof bound.storage;
  if (::getsockname(listening_.get(), bound.get(), &bound.length) != 0)
    return failedToListen(address_.text(), "getsockname");
  if (address_.length == 0) address_ = bound;
  address_.setPort(bound.port());
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return failedToListen(address_.text(), "epoll_create1");
  timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer_.valid()) return failedToListen(address_.text(), "timerfd_create");
  if (!watch(listening_.get(), EPOLLIN | EPOLLET) || !watch(timer_.get(), EPOLLIN))
    return failedToListen(address_.text(), "epoll_ctl");
  return {};
}

bool Acceptor::watch(int descriptor, uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = descriptor}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

uint64_t Acceptor::open(const Token& token, std::function<void()> arrived) {
  std::lock_guard lock(mutex_);
  uint64_t listener = 0;
  // A number that a stranger cannot guess; without random numbers no proof can be made either.
  while (listener == 0 || listeners_.contains(listener)) {
    if (!fillRandom(&listener, sizeof listener)) listener = nowNanoseconds();
  }
  listeners_[listener] = {token, std::move(arrived), {}};
  return listener;
}

void Acceptor::open(uint64_t listener, const Token& token, std::function<void()> arrived) {
  std::lock_guard lock(mutex_);
  listeners_[listener] = {token, std::move(arrived), {}};
}

void Acceptor::close(uint64_t listener) {
  std::lock_guard lock(mutex_);
  listeners_.erase(listener);
}

Status Acceptor::poll(uint64_t listener, std::vector<AcceptedSocket>& out) {
  std::lock_guard lock(mutex_);
  std::array<epoll_event, 64> events;
  epoll_wait(epoll_.get(), events.data(), int(events.size()), 0);  // clears the edge; below all are looked at
  uint64_t expired = 0;
  [[maybe_unused]] const ssize_t timer = read(timer_.get(), &expired, sizeof expired);
  const uint64_t now = nowNanoseconds();
  acceptAll(now, listener);
  advanceAll(now, listener);
  setTimer(now);
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return {ncclInternalError, "a listener is polled after it was closed"};
  for (AcceptedSocket& socket : found->second.arrived) out.push_back(std::move(socket));
  found->second.arrived.clear();
  return starved_;
}

// Those who have said a right hello know a number that only engines have: they stay.
void Acceptor::makeRoom(uint64_t now, uint64_t polled) {
  advanceAll(now, polled);
  if (strangers_.size() < kMaxStrangers) return;
  const auto first =
      std::find_if(strangers_.begin(), strangers_.end(), [](const Stranger& s) { return !s.challenged; });
  if (first != strangers_.end()) strangers_.erase(first);
}

void Acceptor::acceptAll(uint64_t now, uint64_t polled) {
  for (;;) {
    Address peer;
    peer.length = sizeof peer.storage;
    Descriptor descriptor(accept4(listening_.get(), peer.get(), &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!descriptor.valid()) {
      const int error = errno;
      if (error == EINTR || error == ECONNABORTED) continue;
      if (!isShortage(error)) {
        refusedSince_ = 0;
      } else if (refusedSince_ == 0) {
        refusedSince_ = now;
      } else if (now - refusedSince_ > kStarvedAfter) {
        starved_ = {ncclSystemError, std::string("connections from other hosts cannot be accepted: ") +
                                         std::strerror(error) + limitBehind(error)};
      }
      return;
    }
    refusedSince_ = 0;
    starved_ = {};
    if (strangers_.size() >= kMaxStrangers) makeRoom(now, polled);
    Stranger& stranger = strangers_.emplace_back();
    stranger.socket.peer = peer.textWithPort();
    stranger.socket.descriptor = std::move(descriptor);
    stranger.deadline = now + kHelloTimeout;
    if (!watch(stranger.socket.descriptor.get(), EPOLLIN | EPOLLRDHUP | EPOLLET)) strangers_.pop_back();
  }
}

Acceptor::Outcome Acceptor::advance(Stranger& stranger) {
  for (;;) {
    const bool isHello = !stranger.challenged;
    const size_t due = isHello ? sizeof(Hello) : sizeof(Sha256Digest);
    char* const into =
        isHello ? reinterpret_cast<char*>(&stranger.socket.hello) : reinterpret_cast<char*>(stranger.proof.data());
    const ssize_t got =
        recv(stranger.socket.descriptor.get(), into + stranger.received, due - stranger.received, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Outcome::waits;
    if (got <= 0) return Outcome::leaves;
    stranger.received += size_t(got);
    if (stranger.received < due) continue;
    stranger.received = 0;
    const Hello& hello = stranger.socket.hello;
    const auto found = listeners_.find(hello.listener);
    if (hello.magic != kHelloMagic || hello.version != kWireVersion || found == listeners_.end())
      return Outcome::leaves;
    const Token& token = found->second.token;
    if (!isHello) {
      const Sha256Digest right = proofOf(ProofOf::connect, token, hello, stranger.challenge.nonce);
      if (!equalDigests(stranger.proof, right)) return Outcome::leaves;
      const ssize_t sent = send(stranger.socket.descriptor.get(), &kAdmitted, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      return sent == 1 ? Outcome::proved : Outcome::leaves;
    }
    if (hello.sockets == 0 || hello.sockets > kMaxSockets || hello.socket >= hello.sockets) return Outcome::leaves;
    Challenge& challenge = stranger.challenge;
    if (!fillRandom(challenge.nonce.data(), challenge.nonce.size())) return Outcome::leaves;
    challenge.proof = proofOf(ProofOf::accept, token, hello, challenge.nonce);
    // The first bytes on a fresh connection always fit into its buffer.
    const ssize_t sent =
        send(stranger.socket.descriptor.get(), &challenge, sizeof challenge, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != ssize_t(sizeof challenge)) return Outcome::leaves;
    stranger.challenged = true;
    stranger.deadline = nowNanoseconds() + kProofTimeout;
  }
}

void Acceptor::advanceAll(uint64_t now, uint64_t polled) {
  for (auto at = strangers_.begin(); at != strangers_.end();) {
    const Outcome outcome = advance(*at);
    if (outcome == Outcome::waits && now < at->deadline) {
      at++;
      continue;
    }
    if (outcome == Outcome::proved) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->socket.descriptor.get(), nullptr);
      const uint64_t number = at->socket.hello.listener;
      OpenListener& listener = listeners_[number];
      listener.arrived.push_back(std::move(at->socket));
      if (number != polled) listener.notify();
    }
    at = strangers_.erase(at);
  }
}

void Acceptor::setTimer(uint64_t now) {
  uint64_t next = refusedSince_ != 0 ? now + kRetryAfter : 0;
  for (const Stranger& stranger : strangers_) {
    if (next == 0 || stranger.deadline < next) next = stranger.deadline;
  }
  itimerspec at{};  // zero: off
  if (next != 0) {
    const uint64_t in = next > now ? next - now : 1;
    at.it_value = {.tv_sec = time_t(in / (1'000 * kMillisecond)), .tv_nsec = long(in % (1'000 * kMillisecond))};
  }
  timerfd_settime(timer_.get(), 0, &at, nullptr);
}

}  // namespace ncclrun::net
