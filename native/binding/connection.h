// One process that speaks to a local server: its socket (or two pipes), its life, its unread and unsent bytes. Lives on
// the server's thread.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "binding/process_life.h"
#include "binding/server_event.h"

namespace ncclrun::binding {

// How many descriptors one frame can carry.
inline constexpr size_t kMaxDescriptors = 16;

struct OutgoingFrame {
  std::vector<uint8_t> bytes;
  std::vector<Descriptor> descriptors;  // travel with the first byte
  size_t sent = 0;
};

class Connection {
 public:
  // Where nothing is known of the process's life, the end of the stream has to stand for its end.
  // `child` is its pid if we have to reap it, else 0.
  Connection(uint32_t number, Descriptor socket, ProcessLife life, pid_t child, size_t maxPayloadBytes,
             ServerEvents& events)
      : number_(number),
        socket_(std::move(socket)),
        life_(std::move(life)),
        lifeKnown_(life_.known()),
        child_(child),
        maxPayloadBytes_(maxPayloadBytes),
        events_(events) {}

  // Takes in some of what has arrived and tells of frames, and of the end. False: there may be more.
  bool read();
  // The process has exited: its remaining frames come first. Called again until the exit is reported.
  void died();
  void queue(OutgoingFrame frame);
  void write();
  // Ends the connection once everything queued is sent. No `closed` follows.
  void disconnect();

  uint32_t number() const { return number_; }
  // Where we write if that is not the socket: then descriptors cannot travel. Both do not block.
  void setOutput(Descriptor output) { output_ = std::move(output); }
  // The stderr of a child: its end is reported with the child's exit. Does not block.
  void setRemarks(Descriptor remarks) { remarks_ = std::move(remarks); }
  void readRemarks();

  int socket() const { return socket_.get(); }  // -1: closed
  int output() const { return output_.valid() ? output_.get() : socket_.get(); }
  // Our child, and `withItsOwn` what it started in its group; another's process is left alone.
  void kill(bool withItsOwn) const;
  const ProcessLife& life() const { return life_; }
  int remarks() const { return remarks_.get(); }
  bool unsent() const { return !outgoing_.empty(); }
  // Nothing more can come of it.
  bool over() const { return !socket_.valid() && !life_.known(); }

  uint32_t watched = 0;  // epoll events that the server has asked for on the socket

 private:
  void cutFrames();
  void reportExit();
  void close(const std::string& reason);
  bool sendSome(OutgoingFrame& frame);
  void forgetUnsent();

  uint32_t number_;
  Descriptor socket_;
  Descriptor output_;
  Descriptor remarks_;
  std::string remarksEnd_;
  ProcessLife life_;
  std::optional<size_t> leftAtExit_;  // bytes that the process had written and we had not read
  const bool lifeKnown_;
  const pid_t child_;
  size_t maxPayloadBytes_;
  ServerEvents& events_;
  std::vector<uint8_t> incoming_;
  std::deque<OutgoingFrame> outgoing_;
  size_t unsentBytes_ = 0;
  bool disconnecting_ = false;
};

}  // namespace ncclrun::binding
