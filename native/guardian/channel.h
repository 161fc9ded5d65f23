// The socket to the agent: frames in, frames out, nothing blocks.
#pragma once
#include <span>

#include "base/frame.h"
#include "guardian/byte_queue.h"

namespace ncclrun::guardian {

struct Frame {
  FrameHeader header;
  std::span<const char> payload;  // valid until the next call of Channel::next or Channel::receive
};

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}

  // Takes in what has arrived. False when the agent has closed its end or is gone; frames that came before may still be
  // read.
  bool receive();
  uint64_t received() const { return received_; }  // bytes so far: signs of life

  enum class Next { frame, none, garbage };
  // The next whole frame. `garbage`: the bytes are no frame of ours; the channel is of no more use.
  Next next(Frame& out);

  // Control frames queue without limit (they are few and small).
  void send(FrameKind kind, uint16_t flags, uint32_t subject, const void* payload = nullptr, size_t bytes = 0);

  // For output, without a copy: room for a payload of at most `capacity` bytes, written by the caller, then sent by
  // finish(). Not calling finish() sends nothing. `request` as the kind of frame has it.
  char* begin(size_t capacity);
  void finish(FrameKind kind, uint16_t flags, uint32_t subject, uint32_t request, size_t bytes);

  // Hands the socket what it takes. False when the agent is gone.
  bool flush();
  size_t queued() const { return outgoing_.size(); }

 private:
  int fd_;
  ByteQueue incoming_;
  ByteQueue outgoing_;
  uint64_t received_ = 0;
  size_t understood_ = 0;  // bytes of the frame last given out, not yet dropped from incoming_
};

}  // namespace ncclrun::guardian
