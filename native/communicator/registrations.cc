#include "communicator/registrations.h"

#include <atomic>

namespace ncclrun {
namespace {
// Far from any address, and from the communicators' handles.
std::atomic<uintptr_t> last{0x4e435242000000};
constexpr uintptr_t kBufferStep = 16;
}  // namespace

uintptr_t Registrations::add(const RegisteredBuffer& buffer) {
  const uintptr_t handle = last.fetch_add(kBufferStep, std::memory_order_relaxed) + kBufferStep;
  std::lock_guard lock(mutex_);
  buffers_.emplace(handle, buffer);
  return handle;
}

std::optional<RegisteredBuffer> Registrations::remove(uintptr_t handle, bool window) {
  std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end() || found->second.window != window) return std::nullopt;
  const RegisteredBuffer buffer = found->second;
  buffers_.erase(found);
  return buffer;
}

std::optional<RegisteredBuffer> Registrations::find(uintptr_t handle, bool window) const {
  std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end() || found->second.window != window) return std::nullopt;
  return found->second;
}

}  // namespace ncclrun
