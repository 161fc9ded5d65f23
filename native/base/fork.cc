#include "base/fork.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace ncclrun {
namespace {
std::atomic<bool> forkedChild{false};
std::once_flag watching;
}  // namespace

void watchForks() {
  std::call_once(watching,
                 [] { pthread_atfork(nullptr, nullptr, [] { forkedChild.store(true, std::memory_order_relaxed); }); });
}

bool inForkedChild() { return forkedChild.load(std::memory_order_relaxed); }

}  // namespace ncclrun
