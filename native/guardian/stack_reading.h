// Stacks of ranks for the agent: a thread of ours stops them (stack/tracer.h), a child process reads them
// (stack/reader.h), and the loop of the guardian passes on what that writes. One reading at a time.
//
//   idle ──begin──▶ reading ──end of the reader's pipe──▶ idle, and the agent gets a frame without content
#pragma once
#include <pthread.h>

#include <cstdint>
#include <span>
#include <vector>

#include "guardian/byte_queue.h"
#include "guardian/channel.h"
#include "stack/tracer.h"

namespace ncclrun::guardian {

// The payload of FrameKind::readStack: u32 ms until the deadline, u32 count, count × (u32 rank, u32 process). False:
// it is none.
bool parseStackOrder(std::span<const char> payload, uint32_t& milliseconds, std::vector<stack::Target>& targets);

class StackReading {
 public:
  // True: fd() is to be watched. Else it has answered: a reading is under way, or the system refuses a process or
  // thread.
  bool begin(uint32_t request, uint32_t milliseconds, std::vector<stack::Target> targets, Channel& channel);
  // Passes on what has arrived.
  void serve(Channel& channel);
  // -1: nothing is being read.
  int fd() const { return output_; }

 private:
  struct Work {
    std::vector<stack::Target> targets;
    int socket;
    uint64_t deadlineMs;
  };
  static void* trace(void* work);
  bool start(uint32_t milliseconds, std::vector<stack::Target>& targets);
  // The reader is stuck in the kernel, with a process whose memory nobody can read.
  bool isStuck() const;
  void abandon();
  void passOn(Channel& channel);
  static void end(uint32_t request, Channel& channel);

  int output_ = -1;
  uint32_t request_ = 0;
  uint64_t deadlineMs_ = 0;
  pthread_t thread_ = {};
  ByteQueue incoming_;
};

}  // namespace ncclrun::guardian
