// The buffers that a program has registered with one communicator. A handle is a number that is never used twice in the
// process, so a foreign or forgotten one is told apart without looking at what it points to.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "datapath/data_path.h"

namespace ncclrun {

class Registrations {
 public:
  // The handle, never 0.
  uintptr_t add(const RegisteredBuffer& buffer);
  // The buffer, which is no longer known; nothing if there is none of this handle and kind.
  std::optional<RegisteredBuffer> remove(uintptr_t handle, bool window);
  std::optional<RegisteredBuffer> find(uintptr_t handle, bool window) const;

 private:
  mutable std::mutex mutex_;
  std::map<uintptr_t, RegisteredBuffer> buffers_;
};

}  // namespace ncclrun
