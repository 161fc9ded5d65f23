#include "net/socket/helper_thread.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "base/limits.h"
#include "base/thread.h"

namespace ncclrun::net {
namespace {

Status helperFailure(const char* call) {
  const int error = errno;
  return {ncclSystemError,
          std::string("a thread for sockets: ") + call + ": " + std::strerror(error) + limitBehind(error)};
}

}  // namespace

Status HelperThread::start(std::unique_ptr<HelperThread>& out) {
  std::unique_ptr<HelperThread> helper(new HelperThread);
  helper->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!helper->epoll_.valid()) return helperFailure("epoll_create1");
  helper->wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!helper->wake_.valid()) return helperFailure("eventfd");
  epoll_event event{.events = EPOLLIN, .data = {.fd = helper->wake_.get()}};
  if (epoll_ctl(helper->epoll_.get(), EPOLL_CTL_ADD, helper->wake_.get(), &event) != 0)
    return helperFailure("epoll_ctl");
  try {
    helper->thread_ = startThread("ncclrun-socket", [self = helper.get()] { self->run(); });
  } catch (const std::system_error& error) {
    return {ncclSystemError, std::string("a thread for sockets cannot be started: ") + error.what()};
  }
  out = std::move(helper);
  return {};
}

HelperThread::~HelperThread() {
  if (!thread_.joinable()) return;
  ends_.store(true, std::memory_order_seq_cst);
  wake();
  thread_.join();
}

Status HelperThread::add(int descriptor, HelperTask& task) {
  std::lock_guard lock(mutex_);
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.fd = descriptor}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) return helperFailure("epoll_ctl");
  tasks_.push_back(&task);
  return {};
}

void HelperThread::remove(int descriptor, HelperTask& task) {
  std::lock_guard lock(mutex_);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  std::erase(tasks_, &task);
}

// Either this thread sees `wanted_` after it has announced its sleep, or the caller sees the announcement.
void HelperThread::wake() {
  wanted_.store(true, std::memory_order_seq_cst);
  if (!asleep_.load(std::memory_order_seq_cst)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void HelperThread::run() {
  std::array<epoll_event, 64> events;
  while (!ends_.load(std::memory_order_seq_cst)) {
    asleep_.store(true, std::memory_order_seq_cst);
    const bool wanted = wanted_.exchange(false, std::memory_order_seq_cst);
    const int count = epoll_wait(epoll_.get(), events.data(), int(events.size()), wanted ? 0 : -1);
    asleep_.store(false, std::memory_order_seq_cst);
    uint64_t woken = 0;
    for (int i = 0; i < count; i++) {
      if (events[size_t(i)].data.fd != wake_.get()) continue;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &woken, sizeof woken);
    }
    wanted_.store(false, std::memory_order_seq_cst);
    std::lock_guard lock(mutex_);
    // A connection has few sockets on one helper: to advance all costs less than to look for the right ones.
    for (HelperTask* const task : tasks_) task->advance();
  }
}

}  // namespace ncclrun::net
