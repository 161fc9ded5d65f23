// Reads frames from a socket: of each its header, then its payload into the memory that the caller names. What comes
// close behind a header is read with it, so that a small frame takes one call of the system.
#pragma once
#include <array>
#include <span>
#include <string>

#include "aggregator/wire.h"
#include "base/error.h"

namespace ncclrun::aggregator {

class FrameReader {
 public:
  enum class Step { nothing, header, payload, closed };

  // Reads on without blocking, or, with receives false, only what was read ahead, which no event of the socket reports
  // any more. header: header() is complete; where the frame has a payload, the caller names its memory
  // before the next step. payload: it is complete. closed: whyClosed() says why.
  Step step(int socket, bool receives = true);
  const FrameHeader& header() const { return header_; }
  // Memory for header().bytes bytes.
  void expect(std::byte* payload) { into_ = payload; }
  // The rest of a payload under way goes to `discarded`, which has room for a chunk; nothing else is touched any more.
  void discardRest(std::byte* discarded) { into_ = discarded; }
  // Why the connection has ended: a clause.
  std::string whyClosed() const;

 private:
  enum class Got { something, nothing, closed };
  Got receive(int socket);
  void takePayload();

  FrameHeader header_;
  std::byte* into_ = nullptr;  // for left_ bytes of payload
  size_t left_ = 0;
  std::array<std::byte, 4096> ahead_ = {};  // from begin_ to end_ is what was read ahead
  size_t begin_ = 0, end_ = 0;
  bool isDrained_ = false;  // the last call has found less than it could have taken
  int error_ = 0;           // errno; 0: the other side has closed the connection
};

// The error that a frame `failed` brings.
Status failureOf(const FrameHeader& header, std::span<const char> sentence);

}  // namespace ncclrun::aggregator
