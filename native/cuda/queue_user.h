// Counts the communicators that share a GPU's hardware queues.
#pragma once
#include <cstdint>

#include "dl/cuda.h"

namespace ncclrun::cuda {

// Registers one communicator as long as it lives. Where the driver has a single queue for all streams
// (CUDA_DEVICE_MAX_CONNECTIONS=1), a stream's wait blocks later work of other streams: a communicator's copies may then
// wait for a peer whose copies stand behind a kernel of another communicator, and that kernel for one that stands
// behind the copies here.
class QueueUser {
 public:
  explicit QueueUser(Device device);
  ~QueueUser();
  QueueUser(const QueueUser&) = delete;
  QueueUser& operator=(const QueueUser&) = delete;

  // True if a wait of its streams may block another communicator.
  bool holdsUpOthers() const;

 private:
  const Device device_;
};

}  // namespace ncclrun::cuda
