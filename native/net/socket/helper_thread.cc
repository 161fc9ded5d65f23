#include "net/socket/helper_thread.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <system_error>

#include "base/limits.h"
#include "base/thread.h"

namespace ncclrun::net {
namespace {

constexpr uint64_t kWakes = 0;  // in place of a share's number

Status helperFailure(const char* call) {
  const int error = errno;
  return {ncclSystemError,
          std::string("a thread for sockets: ") + call + ": " + std::strerror(error) + limitBehind(error)};
}

}  // namespace

Status HelperThread::of(uint32_t index, std::shared_ptr<HelperThread>& out) {
  static std::mutex mutex;
  static auto& threads =
      *new std::map<uint32_t, std::weak_ptr<HelperThread>>;  // never destroyed, as threads may not be
  std::lock_guard lock(mutex);
  out = threads[index].lock();
  if (out != nullptr) return {};
  std::shared_ptr<HelperThread> made(new HelperThread);
  NCCLRUN_TRY(made->start());
  threads[index] = made;
  out = std::move(made);
  return {};
}

Status HelperThread::start() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return helperFailure("epoll_create1");
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return helperFailure("eventfd");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakes}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) return helperFailure("epoll_ctl");
  try {
    thread_ = startThread("ncclrun-socket", [this] { run(); });
  } catch (const std::system_error& error) {
    return {ncclSystemError, std::string("a thread for sockets cannot be started: ") + error.what()};
  }
  return {};
}

HelperThread::~HelperThread() {
  if (!thread_.joinable()) return;
  ends_.store(true, std::memory_order_seq_cst);
  wake();
  thread_.join();
}

std::shared_ptr<HelperThread::Share> HelperThread::open() {
  std::lock_guard lock(mutex_);
  return shares_.emplace_back(std::make_shared<Share>(++opened_));
}

void HelperThread::close(const Share& share) {
  std::lock_guard lock(mutex_);
  std::erase_if(shares_, [&share](const std::shared_ptr<Share>& each) { return each.get() == &share; });
}

Status HelperThread::watch(int descriptor, const Share& share) {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.u64 = share.number}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 ? Status() : helperFailure("epoll_ctl");
}

void HelperThread::unwatch(int descriptor) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

// Either this thread sees `wanted_` after it has announced its sleep, or the caller sees the announcement.
void HelperThread::wake() {
  wanted_.store(true, std::memory_order_seq_cst);
  if (!asleep_.load(std::memory_order_seq_cst)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void HelperThread::run() {
  std::array<epoll_event, 64> events;
  std::vector<std::shared_ptr<Share>> shares;
  while (!ends_.load(std::memory_order_seq_cst)) {
    asleep_.store(true, std::memory_order_seq_cst);
    const bool wanted = wanted_.exchange(false, std::memory_order_seq_cst);
    const int count = epoll_wait(epoll_.get(), events.data(), int(events.size()), wanted ? 0 : -1);
    asleep_.store(false, std::memory_order_seq_cst);
    const auto happened = std::span(events).first(size_t(std::max(count, 0)));
    uint64_t woken = 0;
    for (const epoll_event& event : happened) {
      if (event.data.u64 != kWakes) continue;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &woken, sizeof woken);
    }
    wanted_.store(false, std::memory_order_seq_cst);
    {
      std::lock_guard lock(mutex_);
      shares = shares_;
    }
    for (const std::shared_ptr<Share>& share : shares) {
      const bool isWanted = share->wanted.exchange(false, std::memory_order_seq_cst);
      const auto isOfShare = [&share](const epoll_event& event) { return event.data.u64 == share->number; };
      if (!isWanted && std::none_of(happened.begin(), happened.end(), isOfShare)) continue;
      std::lock_guard lock(share->mutex);
      // A connection has few sockets on one helper: to advance all costs less than to look for the right ones.
      for (HelperTask* const task : share->tasks) task->advance();
    }
    shares.clear();
  }
}

Status Helper::start(uint32_t index, std::unique_ptr<Helper>& out) {
  std::shared_ptr<HelperThread> thread;
  NCCLRUN_TRY(HelperThread::of(index, thread));
  out.reset(new Helper(std::move(thread)));
  return {};
}

Status Helper::add(int descriptor, HelperTask& task) {
  std::lock_guard lock(share_->mutex);
  NCCLRUN_TRY(thread_->watch(descriptor, *share_));
  share_->tasks.push_back(&task);
  return {};
}

void Helper::remove(int descriptor, HelperTask& task) {
  std::lock_guard lock(share_->mutex);
  thread_->unwatch(descriptor);
  std::erase(share_->tasks, &task);
}

void Helper::wake() {
  share_->wanted.store(true, std::memory_order_seq_cst);
  thread_->wake();
}

}  // namespace ncclrun::net
