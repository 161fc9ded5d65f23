// Detects the exit of another process: its pidfd becomes readable. If the kernel or a sandbox gives no pidfd, the owner
// polls hasEnded(), which recognizes a later process with the same pid by its start time.
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "base/descriptor.h"

namespace ncclrun::binding {

class ProcessLife {
 public:
  // An unknown process.
  ProcessLife() = default;
  static ProcessLife ofChild(pid_t pid);
  // The process at the other end of a socket. Kernels before 6.5 give no pidfd for a peer; there another process could
  // in theory have its pid already.
  static ProcessLife ofPeer(int socket, pid_t pid);

  bool known() const { return descriptor_.valid() || pid_ != 0; }
  int descriptor() const { return descriptor_.get(); }  // -1: poll hasEnded()
  bool needsPolling() const { return pid_ != 0; }
  bool hasEnded() const;
  void forget();

 private:
  static ProcessLife of(Descriptor descriptor, pid_t pid, bool isChild);

  Descriptor descriptor_;
  pid_t pid_ = 0;  // 0 if there is a pidfd, or for an unknown process
  bool isChild_ = false;
  uint64_t startTime_ = 0;  // clock ticks since the machine's start
};

}  // namespace ncclrun::binding
