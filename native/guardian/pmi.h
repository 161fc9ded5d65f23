// The PMI connection of one rank: a socket by which an MPI library asks the agent for keys and barriers. The guardian
// passes bytes on and understands none of them.
//
//   reading ──bytes──▶ asked ──answer with kPmiRead──▶ reading      (any state) ──the rank's end, kPmiClose──▶ closed
//
// A rank that sends without end waits in `asked`, so that at most kPieceBytes of it are under way.
#pragma once
#include <cstdint>
#include <span>

#include "guardian/byte_queue.h"
#include "guardian/channel.h"

namespace ncclrun::guardian {

class PmiConnection {
 public:
  // `fd` is our end of the socket, -1: the rank has none.
  PmiConnection(int fd, uint32_t rank) : fd_(fd), rank_(rank) {}

  // Writes what waits for the rank, then sends one piece of what it has written to the agent.
  void serve(Channel& channel);
  // The agent's answer, with flags kPmi*.
  void answer(std::span<const char> bytes, uint16_t flags);
  // The rank is dead: sends what it has left in the socket and closes it.
  void finish(Channel& channel);
  // What epoll must report; 0: nothing.
  uint32_t events() const;
  int fd() const { return fd_; }

 private:
  void write();
  // False: nothing is there, or the rank has closed its end.
  bool sendPiece(Channel& channel);
  void close();

  int fd_;
  uint32_t rank_;
  bool isAsked_ = false;
  bool isClosing_ = false;
  ByteQueue pending_;
};

}  // namespace ncclrun::guardian
