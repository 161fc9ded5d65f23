// Communicators whose operations share a GPU's queues with each other's.
#pragma once
#include <cstdint>

#include "dl/cuda.h"

namespace ncclrun::cuda {

// One of them, as long as it lives. Where the driver has a single queue for all streams
// (CUDA_DEVICE_MAX_CONNECTIONS=1), a stream's wait holds up what other streams have behind it: a communicator's copies
// then wait for a peer whose own stand behind a kernel of another communicator, and that kernel for one that stands
// behind the copies here.
class QueueUser {
 public:
  explicit QueueUser(Device device);
  ~QueueUser();
  QueueUser(const QueueUser&) = delete;
  QueueUser& operator=(const QueueUser&) = delete;

  // Whether a wait of its streams may hold up another one.
  bool holdsUpOthers() const;

 private:
  const Device device_;
};

}  // namespace ncclrun::cuda
