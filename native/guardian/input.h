// The standard input of one rank: bytes from the agent into the rank's pipe, credit back as the rank takes them.
#pragma once
#include <cstdint>
#include <span>

#include "guardian/byte_queue.h"
#include "guardian/channel.h"

namespace ncclrun::guardian {

class InputStream {
 public:
  // `fd` is the writing end of the rank's pipe, or -1: what is sent to it is taken and thrown away.
  InputStream(int fd, uint32_t rank) : fd_(fd), rank_(rank) {}

  // Queues bytes, or the end of the stream behind them, and writes what the pipe takes.
  void accept(std::span<const char> bytes, bool end, Channel& channel);
  // Writes what the pipe takes now.
  void write(Channel& channel);
  // True while bytes wait for room in the pipe.
  bool waiting() const { return open() && !pending_.empty(); }

  bool open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // The rank is dead or has closed its end: what waits is thrown away, and credited so that the sender does not wait
  // for ever.
  void close(Channel& channel);

 private:
  void grant(Channel& channel, uint64_t bytes) const;

  int fd_;
  uint32_t rank_;
  bool ending_ = false;
  ByteQueue pending_;
};

}  // namespace ncclrun::guardian
