// How the end of another process is noticed: its pidfd becomes readable; where the kernel or a sandbox gives none, it
// is looked at again and again, told apart by its start time from a later process of the same number.
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "base/descriptor.h"

namespace ncclrun::binding {

class ProcessLife {
 public:
  // Nothing is known of the process.
  ProcessLife() = default;
  static ProcessLife ofChild(pid_t pid);
  // The process at the other end of a socket. Kernels before 6.5 give no pidfd for that; there its number could in
  // theory be another's already.
  static ProcessLife ofPeer(int socket, pid_t pid);

  bool known() const { return descriptor_.valid() || pid_ != 0; }
  int descriptor() const { return descriptor_.get(); }  // -1: look at hasEnded()
  bool mustBeAsked() const { return pid_ != 0; }
  bool hasEnded() const;
  void forget();

 private:
  static ProcessLife of(Descriptor descriptor, pid_t pid, bool isChild);

  Descriptor descriptor_;
  pid_t pid_ = 0;  // 0: there is a pidfd, or nothing is known
  bool isChild_ = false;
  uint64_t startTime_ = 0;  // clock ticks since the machine's start
};

}  // namespace ncclrun::binding
