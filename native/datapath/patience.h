// How a rank waits for something that a peer, the proxy thread or the agent will change: polls for a bounded time, then
// sleeps on its doorbell. Every wait ends when the communicator is interrupted.
#pragma once
#include <sched.h>

#include "base/clock.h"
#include "datapath/interrupt.h"
#include "datapath/loan.h"
#include "plan/segment.h"

namespace ncclrun {

// Asked before each sleep whether what is waited for can still come; if not, raises the interrupt.
class LookOut {
 public:
  virtual void lookOut() = 0;
  // From now on the doorbell also rings when something comes that is not waited for: asked for in a long sleep.
  virtual void hearAll() = 0;

 protected:
  ~LookOut() = default;
};

class Patience {
 public:
  // `loan`: for a thread that is lent, which never sleeps here but polls until it is due; null for others.
  Patience(Interrupt& interrupt, Doorbell& own, uint64_t spinNanoseconds, Loan* loan = nullptr,
           LookOut* lookOut = nullptr)
      : interrupt_(interrupt), own_(own), spinNanoseconds_(spinNanoseconds), loan_(loan), lookOut_(lookOut) {}

  // Returns true when ready() does, false if interrupted first. ready() must look with seq_cst loads; beforeSleep() is
  // called once each time polling gave nothing, when whoever changes something already rings: what it sees there, or a
  // look of ready() after it, is not missed.
  template <class Ready, class BeforeSleep>
  bool wait(Ready&& ready, BeforeSleep&& beforeSleep) {
    if (ready()) return !interrupt_.raised();
    uint64_t until = 0;
    for (uint32_t round = 1;; round++) {
      if (ready()) return true;  // first: who slept while it came, and a peer left behind it, has all it needs
      if (interrupt_.raised()) return false;
      pauseBriefly();
      if (round % kRoundsPerLook != 0 && spinNanoseconds_ != 0) continue;
      const uint64_t now = nowNanoseconds();
      if (until == 0) until = now + spinNanoseconds_;
      const bool lent = loan_ != nullptr && loan_->lent();
      if (lent ? loan_->goesOn(now) : now < until) {
        sched_yield();  // the peer may need this very core
        continue;
      }
      if (lent) {
        loan_->stop();  // and goes on where sleeping is allowed
        until = 0;
        continue;
      }
      sleep(ready, beforeSleep);
      until = 0;
    }
  }
  template <class Ready>
  bool wait(Ready&& ready) {
    return wait(ready, [] {});
  }

  Interrupt& interrupt() const { return interrupt_; }

 private:
  static constexpr uint32_t kRoundsPerLook = 16;      // between two looks at the clock; about half a microsecond
  static constexpr uint64_t kLongSleep = 50'000'000;  // of nanoseconds; shorter ones are waits as usual

  template <class Ready, class BeforeSleep>
  void sleep(Ready& ready, BeforeSleep& beforeSleep) {
    own_.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = own_.sequence.load(std::memory_order_seq_cst);
    beforeSleep();
    if (lookOut_ != nullptr) lookOut_->lookOut();
    const bool sleeps = !interrupt_.raised() && !ready();
    if (sleeps && !futexWait(own_.sequence, seen, lookOut_ == nullptr ? kForEver : kLongSleep)) {
      lookOut_->hearAll();
      lookOut_->lookOut();
      if (!interrupt_.raised()) futexWait(own_.sequence, seen);
    }
    own_.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

  Interrupt& interrupt_;
  Doorbell& own_;
  const uint64_t spinNanoseconds_;
  Loan* const loan_;
  LookOut* const lookOut_;
};

}  // namespace ncclrun
