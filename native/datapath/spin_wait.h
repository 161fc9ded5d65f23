// A rank's wait for a change by a peer, the proxy thread or the agent: it polls for a bounded time, then sleeps on the
// rank's doorbell. Every wait ends when the communicator is interrupted.
#pragma once
#include <sched.h>

#include "base/clock.h"
#include "datapath/borrowed_thread.h"
#include "datapath/interrupt.h"
#include "plan/segment.h"

namespace ncclrun {

// Called before each sleep: raises the interrupt if the awaited peers are gone.
class PeerWatch {
 public:
  virtual void checkPeers() = 0;
  // From now on the doorbell also rings for data that nobody waits for. Called in a long sleep.
  virtual void watchAll() = 0;

 protected:
  ~PeerWatch() = default;
};

class SpinWait {
 public:
  // `borrowed`: set if the wait runs on a borrowed thread, which never sleeps here but polls until its time is up.
  SpinWait(Interrupt& interrupt, Doorbell& own, uint64_t spinNanoseconds, BorrowedThread* borrowed = nullptr,
           PeerWatch* peerWatch = nullptr)
      : interrupt_(interrupt),
        own_(own),
        spinNanoseconds_(spinNanoseconds),
        borrowed_(borrowed),
        peerWatch_(peerWatch) {}

  // Returns true when ready() does, false if interrupted first. ready() must look with seq_cst loads; beforeSleep() is
  // called once each time polling gave nothing, when whoever changes something already rings: what it sees there, or a
  // look of ready() after it, is not missed.
  template <class Ready, class BeforeSleep>
  bool wait(Ready&& ready, BeforeSleep&& beforeSleep) {
    if (ready()) return !interrupt_.raised();
    uint64_t until = 0;
    for (uint32_t round = 1;; round++) {
      if (ready()) return true;  // first: data that arrived before a peer left is still good
      if (interrupt_.raised()) return false;
      pauseBriefly();
      if (round % kPollsPerClockRead != 0 && spinNanoseconds_ != 0) continue;
      const uint64_t now = nowNanoseconds();
      if (until == 0) until = now + spinNanoseconds_;
      const bool isBorrowed = borrowed_ != nullptr && borrowed_->isBorrowed();
      if (isBorrowed ? borrowed_->hasTimeLeft(now) : now < until) {
        sched_yield();  // the peer may need this very core
        continue;
      }
      if (isBorrowed) {
        borrowed_->yield();  // and continues on a thread that may sleep
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
  static constexpr uint32_t kPollsPerClockRead = 16;  // polls between two reads of the clock; about half a microsecond
  static constexpr uint64_t kLongSleep = 50'000'000;  // of nanoseconds; shorter ones are waits as usual

  template <class Ready, class BeforeSleep>
  void sleep(Ready& ready, BeforeSleep& beforeSleep) {
    own_.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = own_.sequence.load(std::memory_order_seq_cst);
    beforeSleep();
    if (peerWatch_ != nullptr) peerWatch_->checkPeers();
    const bool sleeps = !interrupt_.raised() && !ready();
    if (sleeps && !futexWait(own_.sequence, seen, peerWatch_ == nullptr ? kForEver : kLongSleep)) {
      peerWatch_->watchAll();
      peerWatch_->checkPeers();
      if (!interrupt_.raised()) futexWait(own_.sequence, seen);
    }
    own_.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

  Interrupt& interrupt_;
  Doorbell& own_;
  const uint64_t spinNanoseconds_;
  BorrowedThread* const borrowed_;
  PeerWatch* const peerWatch_;
};

}  // namespace ncclrun
