// What ends every wait of one rank of one communicator: an abort of its own, a broken connection, or the abort word of
// its host.
#pragma once
#include <atomic>
#include <mutex>
#include <string>

#include "core/error.h"
#include "core/segment.h"

namespace ncclrun {

class Interrupt {
 public:
  Interrupt(AbortBlock& block, Doorbell& own) : block_(block), own_(own) {}

  bool raised() const {
    return local_.load(std::memory_order_acquire) || block_.word.load(std::memory_order_acquire) >= 2;
  }
  // Ends the waits of this rank; the first reason stays. Any thread.
  void raise(const Status& why);
  // The reason, or success while nothing is raised.
  Status status() const;

 private:
  AbortBlock& block_;
  Doorbell& own_;
  std::atomic<bool> local_{false};
  mutable std::mutex mutex_;
  Status why_;
};

}  // namespace ncclrun
