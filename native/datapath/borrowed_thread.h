// A caller's thread that runs queued work for a bounded time. The work runs on a stack of its own: when the time is up,
// it yields where it waits, and another thread resumes it.
#pragma once
#include <cstdint>

#include "base/clock.h"
#include "base/fiber.h"

namespace ncclrun {

class BorrowedThread {
 public:
  // Runs `function` on the calling thread until `until`. Returns false if the time was up first; then any thread has to
  // call finish().
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

  bool isBorrowed() const { return !over_; }
  // True if the time is not up.
  bool hasTimeLeft(uint64_t now) const { return now < until_; }
  // Called by the function that runs. It must hold no lock and keep nothing that belongs to the thread.
  void yield() { fiber_.suspend(); }
  void yieldIfDue() {
    if (!over_ && nowNanoseconds() >= until_) fiber_.suspend();
  }

 private:
  Fiber fiber_;
  uint64_t until_ = 0;
  bool over_ = false;
};

}  // namespace ncclrun
