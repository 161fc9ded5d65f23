// A thread that somebody lends for a bounded time. What it runs meanwhile has a stack of its own: when the time is up,
// it stops where it waits, and another thread goes on with it.
#pragma once
#include <cstdint>

#include "base/clock.h"
#include "base/fiber.h"

namespace ncclrun {

class Loan {
 public:
  // Runs `function` on the calling thread until then. False: the time was up first; finish() has to follow, on any
  // thread.
  bool run(void (*function)(void*), void* argument, uint64_t until) {
    until_ = until;
    over_ = false;
    fiber_.start(function, argument);
    fiber_.resume();
    return fiber_.done();
  }
  void finish() {
    over_ = true;
    fiber_.resume();
  }

  bool lent() const { return !over_; }
  // Not yet due.
  bool goesOn(uint64_t now) const { return now < until_; }
  // For what is being run. No lock may be held, and nothing kept that belongs to the thread.
  void stop() { fiber_.suspend(); }
  void stopIfDue() {
    if (!over_ && nowNanoseconds() >= until_) fiber_.suspend();
  }

 private:
  Fiber fiber_;
  uint64_t until_ = 0;
  bool over_ = false;
};

}  // namespace ncclrun
