// The thread that moves a communicator's connections to other hosts while no block does, asleep in epoll; and the event
// descriptors that wake it. One per communicator: none waits for another one's.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>

#include "base/descriptor.h"
#include "base/error.h"

struct epoll_event;

namespace ncclrun {

class Proxy {
 public:
  // What the thread calls. Each returns without blocking.
  class Work {
   public:
    // The out-of-band network has something to do.
    virtual void onOutOfBand() = 0;
    struct Outcome {
      bool isWatched;  // something is to move with the network's next event
      bool hasMoved;   // something has
      bool isPolled;   // something is to move that has no event
    };
    // Moves what is watched: `fromNetwork` if the network's events say so.
    virtual Outcome onNetwork(bool fromNetwork) = 0;
    // At least every Setup::tickNanoseconds. Nanoseconds until the next call, where that is to be sooner.
    virtual uint64_t onTick() = 0;
    // The last call: says goodbye and closes what only this thread may close.
    virtual void onEnd() = 0;

   protected:
    ~Work() = default;
  };
  struct Setup {
    int outOfBand;  // event descriptor
    int network;    // event descriptor; -1: the network has none, what is watched is polled
    uint64_t tickNanoseconds;
    uint64_t pauseNanoseconds;   // between polls that have found nothing, at most; after a second seven times as long
    uint64_t lingerNanoseconds;  // polls go on for so long after something has moved
  };
  explicit Proxy(Work& work) : work_(work) {}
  ~Proxy() { end(); }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  Status start(const Setup& setup);
  // Ends the thread; returns when onEnd() has.
  void end();
  // The program has destroyed the communicator, of which graphs may still need the connections: when the process exits,
  // the thread ends as by end(). Any thread.
  void endAtExit() { endsAtExit_.store(true, std::memory_order_seq_cst); }
  // Something is watched now: the network's next event wakes the thread. Whoever calls it looks once more afterwards.
  // Any thread.
  void arm();
  // The thread calls onNetwork() soon. Any thread.
  void wake();

 private:
  friend class LivingProxies;
  Status watch(int descriptor, uint32_t events, uint64_t name);
  void run();
  void move();
  // Sleeps until an event, or as long as there is nothing to do. The events' number.
  int sleep(std::span<epoll_event> events);

  Work& work_;
  Setup setup_ = {};
  Descriptor epoll_, wake_;
  std::atomic<bool> ends_{false};
  std::atomic<bool> isLeft_{false};  // the process exits: the thread ends without a goodbye
  std::atomic<bool> endsAtExit_{false};
  std::atomic<bool> wakeRequested_{false};
  uint64_t nextTick_ = 0;  // nanoseconds
  uint64_t movedAt_ = 0;   // nanoseconds: when something has moved last, or somebody has woken the thread
  uint32_t polls_ = 0;     // since the last look at events
  bool isPolling_ = false;
  std::thread thread_;
};

}  // namespace ncclrun
