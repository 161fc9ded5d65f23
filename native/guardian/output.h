// One output stream of one rank: a pipe, cut into whole lines, sent as frames within the credit. Nothing is dropped and
// nothing reordered.
#pragma once
#include <cstdint>

#include "guardian/byte_queue.h"
#include "guardian/channel.h"

namespace ncclrun::guardian {

// How many bytes of output the receivers are ready for, all ranks together.
class Credit {
 public:
  void add(uint64_t bytes) {
    available_ = bytes > UINT64_MAX - available_ ? UINT64_MAX : available_ + bytes;
    if (available_ > peak_) peak_ = available_;
  }
  void spend(uint64_t bytes) { available_ -= bytes; }
  uint64_t available() const { return available_; }

  // A line that is longer goes out in pieces. Half of the most we ever had: a receiver that returns credit in halves
  // still gets us going.
  uint64_t lineLimit() const { return peak_ / 2 < 1 ? 1 : peak_ / 2 < kLineBytes ? peak_ / 2 : kLineBytes; }

 private:
  static constexpr uint64_t kLineBytes = 64 << 10;
  uint64_t available_ = 0;
  uint64_t peak_ = 0;
};

class OutputStream {
 public:
  OutputStream(int fd, uint32_t rank, bool standardError) : fd_(fd), rank_(rank), standardError_(standardError) {}

  enum class Read { some, nothingYet, ended };
  // One read of the pipe; needs credit for at least one line (Credit::lineLimit). At the end of the stream the last
  // frame is marked and the pipe closed.
  Read read(Channel& channel, Credit& credit);

  // The beginning of a line that nothing was added to since this time (monotonic ms); 0 if there is none.
  uint64_t begunSince() const { return line_.empty() ? 0 : quietSinceMs_; }
  // Sends that beginning.
  void sendBegun(Channel& channel, Credit& credit);

  // The rank is dead, or all that descends from it: notes what they left in the pipe.
  void writersDied();
  // Reads what they left, but waits for nobody who outlives them and holds the pipe open. False: the credit ran out
  // first.
  bool settle(Channel& channel, Credit& credit);
  // Ends the stream, whoever still holds the pipe. Call settle() first.
  void finish(Channel& channel, Credit& credit);

  bool open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

 private:
  void close();
  void sendFrame(Channel& channel, Credit& credit, uint16_t flags, size_t bytes) const;

  int fd_;
  uint32_t rank_;
  bool standardError_;
  ByteQueue line_;  // the beginning of a line whose end has not come; shorter than the line limit
  uint64_t quietSinceMs_ = 0;
  uint64_t owed_ = 0;  // bytes in the pipe at the rank's death and not yet read
};

}  // namespace ncclrun::guardian
