#include "net/socket/listener.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "base/limits.h"

namespace ncclrun {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kHelloTimeout = 10 * kSecond;  // for a hello
constexpr uint64_t kRetry = kSecond / 10;         // after an accept that the system refused
constexpr uint64_t kStarving = 10 * kSecond;      // so long it may refuse every one

bool isOutOfResources(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

}  // namespace

// A connection that has not said its hello yet.
class Listener::Stranger final : public Pollable {
 public:
  Stranger(Listener& listener, Descriptor connection)
      : listener_(listener), connection_(std::move(connection)), deadline_(nowNanoseconds() + kHelloTimeout) {}
  ~Stranger() override {
    if (connection_.valid()) listener_.proxy_->remove(connection_.get(), *this);
  }
  bool start() { return listener_.proxy_->add(connection_.get(), EPOLLIN | EPOLLRDHUP, *this).ok(); }
  uint64_t deadline() const { return deadline_; }

  void onEvents(uint32_t) override {
    while (done_ < sizeof hello_) {
      const ssize_t got =
          recv(connection_.get(), reinterpret_cast<char*>(&hello_) + done_, sizeof hello_ - done_, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) return leave();
      done_ += size_t(got);
    }
    listener_.proxy_->remove(connection_.get(), *this);
    listener_.admit_(hello_, connection_);
    leave();
  }

 private:
  // Destroys this.
  void leave() {
    listener_.strangers_.remove_if([this](const auto& one) { return one.get() == this; });
  }

  Listener& listener_;
  Descriptor connection_;
  const uint64_t deadline_;
  socket::Hello hello_{};
  size_t done_ = 0;
};

Listener::Listener(std::shared_ptr<Proxy> proxy, Descriptor listening, Admit admit, Starved starved)
    : proxy_(std::move(proxy)),
      listening_(std::move(listening)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      admit_(std::move(admit)),
      starved_(std::move(starved)) {}

Listener::~Listener() {
  // From here on no new stranger comes; those there are leave one by one, each waiting for its handler.
  proxy_->remove(listening_.get(), *this);
  if (timer_.valid()) proxy_->remove(timer_.get(), alarm_);
  proxy_->settle([this] { strangers_.clear(); });
}

Status Listener::start() {
  if (!timer_.valid()) {
    const int error = errno;
    return {ncclSystemError, std::string("timerfd_create for connections from other hosts: ") + std::strerror(error) +
                                 limitBehind(error)};
  }
  if (Status status = proxy_->add(timer_.get(), EPOLLIN, alarm_); !status.ok()) return status;
  fcntl(listening_.get(), F_SETFL, fcntl(listening_.get(), F_GETFL) | O_NONBLOCK);
  return proxy_->add(listening_.get(), EPOLLIN, *this);
}

void Listener::onEvents(uint32_t) {
  acceptAll();
  setAlarm();
}

// Until none waits, or the system refuses: the proxy tells of each only once.
void Listener::acceptAll() {
  for (;;) {
    Descriptor connection(accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!connection.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return refused(errno);
    }
    refusedSince_ = 0;
    if (strangers_.size() == kStrangers) strangers_.pop_front();
    strangers_.push_back(std::make_unique<Stranger>(*this, std::move(connection)));
    if (!strangers_.back()->start()) strangers_.pop_back();
  }
}

void Listener::refused(int error) {
  const uint64_t now = nowNanoseconds();
  if (!isOutOfResources(error)) {
    refusedSince_ = 0;
  } else if (refusedSince_ == 0) {
    refusedSince_ = now;
  } else if (now - refusedSince_ > kStarving) {
    refusedSince_ = now;
    starved_({ncclSystemError, std::string("connections from other hosts cannot be accepted: ") + std::strerror(error) +
                                   limitBehind(error)});
  }
}

void Listener::onAlarm() {
  uint64_t expired = 0;
  if (read(timer_.get(), &expired, sizeof expired) != ssize_t(sizeof expired)) return;
  const uint64_t now = nowNanoseconds();
  while (!strangers_.empty() && strangers_.front()->deadline() <= now) strangers_.pop_front();
  acceptAll();
  setAlarm();
}

void Listener::setAlarm() {
  uint64_t next = ~0ull;
  if (!strangers_.empty()) next = strangers_.front()->deadline();
  if (refusedSince_ != 0) next = std::min(next, nowNanoseconds() + kRetry);
  itimerspec at{};  // zero: none
  if (next != ~0ull) at.it_value = {.tv_sec = time_t(next / kSecond), .tv_nsec = long(next % kSecond)};
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

}  // namespace ncclrun
