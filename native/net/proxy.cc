#include "net/proxy.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/thread.h"

namespace ncclrun {
namespace {

constexpr uint64_t kWakeNumber = 0;  // and nobody's: numbers count from 1

Status threadError(const char* what) {
  return {ncclSystemError, std::string("the proxy thread's ") + what + " failed: " + strerror(errno)};
}

}  // namespace

std::shared_ptr<Proxy> Proxy::shared(Status& why) {
  static std::mutex mutex;
  static std::weak_ptr<Proxy> current;
  std::lock_guard lock(mutex);
  if (auto proxy = current.lock()) return proxy;
  std::shared_ptr<Proxy> proxy(new Proxy);
  why = proxy->start();
  if (!why.ok()) return nullptr;
  current = proxy;
  return proxy;
}

Status Proxy::start() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return threadError("epoll_create1");
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return threadError("eventfd");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeNumber}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) return threadError("epoll_ctl");
  try {
    thread_ = startThread("ncclrun-proxy", [this] { run(); });
  } catch (const std::system_error& error) {
    return {ncclSystemError, std::string("the proxy thread cannot be started: ") + error.what()};
  }
  return {};
}

Proxy::~Proxy() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  while (write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

Status Proxy::add(int fd, uint32_t events, Pollable& who) {
  std::lock_guard lock(mutex_);
  const uint64_t number = ++lastNumber_;
  epoll_event event{.events = events | EPOLLET, .data = {.u64 = number}};
  watched_[number] = &who;
  who.number_.store(number, std::memory_order_relaxed);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  watched_.erase(number);
  return threadError("epoll_ctl");
}

void Proxy::rearm(int fd, uint32_t events, const Pollable& who) {
  const uint64_t number = who.number_.load(std::memory_order_relaxed);
  if (number == kWakeNumber) return;  // add() is about to arm it
  epoll_event event{.events = events | EPOLLET, .data = {.u64 = number}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Proxy::remove(int fd, Pollable& who) {
  std::lock_guard lock(mutex_);
  const auto found = watched_.find(who.number_.load(std::memory_order_relaxed));
  if (found == watched_.end() || found->second != &who) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(found);
}

void Proxy::run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events.data(), int(events.size()), -1);
    std::lock_guard lock(mutex_);
    for (int i = 0; i < count; i++) {
      if (events[i].data.u64 == kWakeNumber) return;
      const auto found = watched_.find(events[i].data.u64);
      if (found != watched_.end()) found->second->onEvents(events[i].events);
    }
  }
}

}  // namespace ncclrun
