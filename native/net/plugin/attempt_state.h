// An attempt (attempt.h) as its thread sees it.
#pragma once
#include <cstdint>
#include <mutex>
#include <utility>

#include "net/plugin/attempt.h"

namespace ncclrun::net::plugin {

struct Attempt::State {
  explicit State(Work wanted);
  // Makes the call once. True: there is nothing more to do. On the same thread each time.
  bool step();
  // With the mutex held: the thread makes no call any more.
  void release();

  Work work;
  const uint64_t since;    // ns
  std::mutex mutex;        // of what follows
  uint64_t callBegan = 0;  // 0: the thread is in no call
  uint64_t callEnded = 0;  // the last one; 0: there was none
  bool hasBegun = false;
  bool isAbandoned = false;
  bool isOver = false;
  bool isTaken = false;
  Yield yield;
};

}  // namespace ncclrun::net::plugin
