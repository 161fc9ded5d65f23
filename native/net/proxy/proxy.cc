#include "net/proxy/proxy.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <system_error>

#include "base/clock.h"
#include "base/limits.h"
#include "base/thread.h"

namespace ncclrun {
namespace {

constexpr uint64_t kWake = 0, kOutOfBand = 1, kNetwork = 2;

Status threadError(const char* what) {
  const int error = errno;
  return {ncclSystemError,
          std::string("the proxy thread's ") + what + " failed: " + strerror(error) + limitBehind(error)};
}

}  // namespace

// The proxies of communicators that the program has not destroyed. When the process exits, their threads end before
// what they use does: objects that the program's other parts and libraries destroy then.
class LivingProxies {
 public:
  static LivingProxies& get() {
    static auto& living = *new LivingProxies;
    static const pid_t process = getpid();  // a forked child has none of the threads
    static const int registered = std::atexit([] {
      if (getpid() == process) living.endAll();
    });
    (void)registered;
    return living;
  }
  void add(Proxy& proxy) {
    std::lock_guard lock(mutex_);
    all_.insert(&proxy);
  }
  void remove(Proxy& proxy) {
    std::lock_guard lock(mutex_);
    all_.erase(&proxy);
    gone_.notify_all();
  }

 private:
  void endAll() {
    // One may be in a call that does not return.
    constexpr auto kMax = std::chrono::seconds(1);
    std::unique_lock lock(mutex_);
    for (Proxy* proxy : all_) {
      const bool isDestroyed = proxy->endsAtExit_.load(std::memory_order_seq_cst);
      (isDestroyed ? proxy->ends_ : proxy->isLeft_).store(true, std::memory_order_seq_cst);
      proxy->wakeRequested_.store(false, std::memory_order_seq_cst);
      proxy->wake();
    }
    gone_.wait_for(lock, kMax, [this] { return all_.empty(); });
  }

  std::mutex mutex_;
  std::condition_variable gone_;
  std::set<Proxy*> all_;  // whose threads run
};

Status Proxy::watch(int descriptor, uint32_t events, uint64_t name) {
  epoll_event event{.events = events, .data = {.u64 = name}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 ? Status{} : threadError("epoll_ctl");
}

Status Proxy::start(const Setup& setup) {
  setup_ = setup;
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return threadError("epoll_create1");
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return threadError("eventfd");
  NCCLRUN_TRY(watch(wake_.get(), EPOLLIN, kWake));
  NCCLRUN_TRY(watch(setup_.outOfBand, EPOLLIN, kOutOfBand));
  if (setup_.network >= 0) NCCLRUN_TRY(watch(setup_.network, EPOLLIN | EPOLLONESHOT, kNetwork));
  LivingProxies::get().add(*this);
  try {
    thread_ = startThread("ncclrun-proxy", [this] { run(); });
  } catch (const std::system_error& error) {
    LivingProxies::get().remove(*this);
    return {ncclSystemError, std::string("the proxy thread cannot be started: ") + error.what()};
  }
  return {};
}

void Proxy::end() {
  if (!thread_.joinable()) return;
  ends_.store(true, std::memory_order_seq_cst);
  wakeRequested_.store(false, std::memory_order_seq_cst);
  wake();
  thread_.join();
}

void Proxy::arm() {
  if (setup_.network < 0) return wake();
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = kNetwork}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, setup_.network, &event);
}

void Proxy::wake() {
  if (wakeRequested_.exchange(true, std::memory_order_seq_cst)) return;
  const uint64_t one = 1;
  while (write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

// What has no events is polled, with pauses so short beside the time since something has moved that the next move is
// hardly later for them.
int Proxy::sleep(std::span<epoll_event> events) {
  const uint64_t now = nowNanoseconds();
  int milliseconds = nextTick_ > now ? int((nextTick_ - now + 999'999) / 1'000'000) : 0;
  if (isPolling_) {
    constexpr uint64_t kShare = 20, kShortest = 2'000;
    constexpr uint32_t kPollsPerLook = 8;
    // After so long the next move may be a little later: an idle thread is to take next to nothing of its core.
    constexpr uint64_t kLong = 1'000'000'000, kTimesLonger = 7;
    const uint64_t idle = now - movedAt_;
    const uint64_t pause = std::min(idle / kShare, setup_.pauseNanoseconds * (idle > kLong ? kTimesLonger : 1));
    const timespec rest{.tv_sec = 0, .tv_nsec = long(pause)};
    pollfd event{.fd = epoll_.get(), .events = POLLIN, .revents = 0};
    if (pause >= kShortest) ppoll(&event, 1, &rest, nullptr);
    if (pause < kShortest && ++polls_ % kPollsPerLook != 0) return 0;
    milliseconds = 0;
  }
  return epoll_wait(epoll_.get(), events.data(), int(events.size()), milliseconds);
}

void Proxy::run() {
  prctl(PR_SET_TIMERSLACK, 1);  // pauses as short as they are meant
  while (!ends_.load(std::memory_order_seq_cst) && !isLeft_.load(std::memory_order_seq_cst)) move();
  if (!isLeft_.load(std::memory_order_seq_cst)) work_.onEnd();
  LivingProxies::get().remove(*this);
}

void Proxy::move() {
  std::array<epoll_event, 4> events;
  const int count = sleep(events);
  bool network = isPolling_, fromNetwork = false;
  for (int i = 0; i < count; i++) {
    if (events[size_t(i)].data.u64 == kOutOfBand) work_.onOutOfBand();
    fromNetwork = fromNetwork || events[size_t(i)].data.u64 == kNetwork;
    if (events[size_t(i)].data.u64 != kWake) continue;
    uint64_t times = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &times, sizeof times);
    wakeRequested_.store(false, std::memory_order_seq_cst);
    network = true;
    movedAt_ = nowNanoseconds();
  }
  if (network || fromNetwork) {
    const Work::Outcome outcome = work_.onNetwork(fromNetwork);
    const uint64_t now = nowNanoseconds();
    if (outcome.hasMoved) movedAt_ = now;
    const bool lingers = now - movedAt_ < setup_.lingerNanoseconds;
    isPolling_ = outcome.isPolled || lingers || (outcome.isWatched && setup_.network < 0);
    if (outcome.isWatched && setup_.network >= 0 && !isPolling_) arm();
  }
  if (const uint64_t now = nowNanoseconds(); now >= nextTick_)
    nextTick_ = now + std::min(setup_.tickNanoseconds, work_.onTick());
}

}  // namespace ncclrun
