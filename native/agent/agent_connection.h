// Frames over one Unix socket, with the descriptors that came along. Used on the control thread only.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/frame.h"

namespace ncclrun {

struct ReceivedFrame {
  FrameKind kind;
  uint32_t request;
  std::span<const std::byte> payload;  // valid during the call
};

class AgentConnection {
 public:
  // Connects to the agent's socket. An error says what is wrong with the path.
  Status open(const std::string& path);
  // Takes a socket that is connected to the agent; `name` is for errors.
  void adopt(Descriptor socket, std::string name);
  bool isOpen() const { return socket_.valid(); }
  void close();

  int descriptor() const { return socket_.get(); }
  short wantedEvents() const;

  // Writes what the socket takes now and keeps the rest.
  Status send(FrameKind kind, uint32_t request, const Bytes& payload);
  Status flush();

  // Reads what is there and hands over every whole frame, until `receive` closes the connection. An error: closed, or
  // bytes that are no frame.
  Status receive(const std::function<void(const ReceivedFrame&)>& receive);

  // The oldest descriptor that came and was not taken yet; invalid if there is none.
  Descriptor takeDescriptor();

 private:
  Status readSome(bool& more);

  std::string path_;
  Descriptor socket_;
  Bytes incoming_;
  std::deque<Descriptor> descriptors_;
  Bytes outgoing_;
  size_t sent_ = 0;  // of outgoing_
};

}  // namespace ncclrun
