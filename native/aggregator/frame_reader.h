// Reads frames from a socket: of each its header, then its payload into the memory that the caller names.
#pragma once
#include <span>
#include <string>

#include "aggregator/wire.h"
#include "base/error.h"

namespace ncclrun::aggregator {

class FrameReader {
 public:
  enum class Step { nothing, header, payload, closed };

  // Reads on without blocking. header: header() is complete; where the frame has a payload, the caller names its memory
  // before the next step. payload: it is complete. closed: whyClosed() says why.
  Step step(int socket);
  const FrameHeader& header() const { return header_; }
  // Memory for header().bytes bytes.
  void expect(std::byte* payload) { into_ = payload; }
  // The rest of a payload under way goes to `discarded`, which has room for a chunk; nothing else is touched any more.
  void discardRest(std::byte* discarded) { into_ = discarded; }
  // The next header has come already, behind the payload: no event of the socket reports it any more.
  bool hasHeader() const { return left_ == 0 && nextFilled_ == sizeof next_; }
  // Why the connection has ended: a clause.
  std::string whyClosed() const;

 private:
  FrameHeader header_, next_;
  size_t nextFilled_ = 0;      // bytes of next_
  std::byte* into_ = nullptr;  // for left_ bytes
  size_t left_ = 0;
  int error_ = 0;  // errno; 0: the other side has closed the connection
};

// The error that a frame `failed` brings.
Status failureOf(const FrameHeader& header, std::span<const char> sentence);

}  // namespace ncclrun::aggregator
