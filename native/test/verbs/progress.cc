// The thread that does what is due later: retransmissions, delayed sends, and all that comes from other processes.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "state.h"
#include "wire.h"

namespace stand_in_verbs {

void wakeProgress() { eventfd_write(world().wake, 1); }

void disarm(QueuePair& pair) {
  if (pair.timer != kNever) world().timers.erase({pair.timer, pair.number});
  pair.timer = kNever;
}

void arm(QueuePair& pair) {
  Time due = kNever;
  if (pair.state == kReadyToSend && (pair.sent > 0 || pair.isBlocked)) due = pair.answerDue;
  if (pair.state == kReadyToSend && pair.sent < pair.works.size()) {
    const Time next = std::max(pair.works[pair.sent].ready, pair.pausedUntil);
    if (next != Time::min()) due = std::min(due, next);
  }
  if (due == pair.timer) return;
  disarm(pair);
  if (due == kNever) return;
  pair.timer = due;
  world().timers.insert({due, pair.number});
  if (due < world().sleepsUntil) wakeProgress();
}

namespace {

void expireTimers() {
  World& all = world();
  const Time now = Clock::now();
  while (!all.timers.empty() && all.timers.begin()->first <= now) {
    const uint32_t number = all.timers.begin()->second;
    all.timers.erase(all.timers.begin());
    const auto found = all.pairs.find(number);
    if (found == all.pairs.end()) continue;
    found->second->timer = kNever;
    onTimer(*found->second, now);
  }
}

// Until the next timer, or something is to be read.
void sleepUntil(Time due, std::vector<pollfd>& descriptors) {
  timespec left = {};
  if (due != kNever) {
    const auto wait = std::chrono::nanoseconds(std::max(due - Clock::now(), Clock::duration(0))).count();
    left = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
  }
  ppoll(descriptors.data(), descriptors.size(), due == kNever ? nullptr : &left, nullptr);
}

void progress() {
  World& all = world();
  std::vector<pollfd> descriptors;
  Lock lock(all.mutex);
  while (!all.isStopping) {
    serveConnections();
    expireTimers();
    const Time due = all.timers.empty() ? kNever : all.timers.begin()->first;
    all.sleepsUntil = due;
    descriptors.assign(1, {.fd = all.wake, .events = POLLIN, .revents = 0});
    addConnections(descriptors);
    lock.unlock();
    sleepUntil(due, descriptors);
    lock.lock();
    all.sleepsUntil = Time::min();
    uint64_t woken = 0;
    if ((descriptors[0].revents & POLLIN) != 0) eventfd_read(all.wake, &woken);
  }
  closeConnections();
  close(all.wake);
  all.wake = -1;
  all.isStopping = false;
  all.acknowledged.notify_all();
}

}  // namespace

void startProgress() {
  World& all = world();
  if (all.wake >= 0) return;
  all.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  openConnections();
  all.progress = std::thread(progress);
}

}  // namespace stand_in_verbs
