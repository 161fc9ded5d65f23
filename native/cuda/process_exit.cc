#include "cuda/process_exit.h"

#include <chrono>
#include <cstdlib>

namespace ncclrun::cuda {

std::timed_mutex& driverCalls() {
  // The driver frees memory only when the whole GPU is idle, for which an exiting process does not wait long.
  static constexpr auto kMaxAtExit = std::chrono::seconds(1);
  static auto& mutex = *new std::timed_mutex;
  static const int registered = std::atexit([] { (void)mutex.try_lock_for(kMaxAtExit); });
  (void)registered;
  return mutex;
}

}  // namespace ncclrun::cuda
