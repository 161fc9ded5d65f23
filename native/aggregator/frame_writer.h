// Writes frames to a socket, in the order in which they were queued.
#pragma once
#include <deque>
#include <memory>

#include "aggregator/wire.h"

namespace ncclrun::aggregator {

class FrameWriter {
 public:
  enum class Flushed { all, some, closed };

  // `payload` stays valid until the frame is written, at least as long as `owner` exists.
  void queue(const FrameHeader& header, const std::byte* payload = nullptr,
             std::shared_ptr<const void> owner = nullptr);
  // Writes what can be written without blocking. closed: the connection has ended, which reading it explains.
  Flushed flush(int socket);
  bool isEmpty() const { return frames_.empty(); }
  // Drops the frames; what is written already is not recalled.
  void clear();
  // Results and contributions that are completely written.
  uint64_t chunksWritten() const { return chunksWritten_; }

 private:
  struct Frame {
    FrameHeader header;
    const std::byte* payload;
    std::shared_ptr<const void> owner;
  };
  void written(size_t bytes);

  std::deque<Frame> frames_;
  size_t written_ = 0;  // bytes of the first frame
  uint64_t chunksWritten_ = 0;
};

}  // namespace ncclrun::aggregator
