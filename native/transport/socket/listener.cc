#include "transport/socket/listener.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <cerrno>

namespace ncclrun {

// A connection that has not said its hello yet.
class Listener::Stranger final : public Pollable {
 public:
  Stranger(Listener& listener, Descriptor connection)
      : listener_(listener),
        connection_(std::move(connection)),
        timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}
  ~Stranger() override {
    if (connection_.valid()) listener_.proxy_->remove(connection_.get(), *this);
    if (timer_.valid()) listener_.proxy_->remove(timer_.get(), alarm_);
  }
  bool start() {
    const itimerspec limit{.it_interval = {}, .it_value = {.tv_sec = kPatienceSeconds, .tv_nsec = 0}};
    return timer_.valid() && timerfd_settime(timer_.get(), 0, &limit, nullptr) == 0 &&
           listener_.proxy_->add(timer_.get(), EPOLLIN, alarm_).ok() &&
           listener_.proxy_->add(connection_.get(), EPOLLIN | EPOLLRDHUP, *this).ok();
  }

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
  struct Alarm final : Pollable {
    explicit Alarm(Stranger& stranger) : stranger(stranger) {}
    void onEvents(uint32_t) override { stranger.leave(); }
    Stranger& stranger;
  };
  // Destroys this.
  void leave() {
    listener_.strangers_.remove_if([this](const auto& one) { return one.get() == this; });
  }

  Listener& listener_;
  Descriptor connection_;
  Descriptor timer_;
  Alarm alarm_{*this};
  socket::Hello hello_{};
  size_t done_ = 0;
};

Listener::Listener(std::shared_ptr<Proxy> proxy, Descriptor listening, Admit admit)
    : proxy_(std::move(proxy)), listening_(std::move(listening)), admit_(std::move(admit)) {}

Listener::~Listener() {
  // From here on no new stranger comes; those there are leave one by one, each waiting for its handler.
  proxy_->remove(listening_.get(), *this);
  proxy_->settle([this] { strangers_.clear(); });
}

Status Listener::start() {
  fcntl(listening_.get(), F_SETFL, fcntl(listening_.get(), F_GETFL) | O_NONBLOCK);
  return proxy_->add(listening_.get(), EPOLLIN, *this);
}

void Listener::onEvents(uint32_t) {
  for (;;) {
    Descriptor connection(accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!connection.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    if (strangers_.size() == kStrangers) strangers_.pop_front();
    strangers_.push_back(std::make_unique<Stranger>(*this, std::move(connection)));
    if (!strangers_.back()->start()) strangers_.pop_back();
  }
}

}  // namespace ncclrun
