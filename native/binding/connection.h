// A process connected to a local server: its socket (or two pipes), its life, its unread and unsent bytes. Used on the
// server's thread only.
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

// Maximum number of descriptors of a frame.
inline constexpr size_t kMaxDescriptors = 16;

struct OutgoingFrame {
  std::vector<uint8_t> bytes;
  std::vector<Descriptor> descriptors;  // travel with the first byte
  size_t sent = 0;
};

class Connection {
 public:
  // If the process's life is unknown, the end of the stream counts as its exit. `child`: its pid if it is a child that
  // this process must reap, else 0.
  Connection(uint32_t number, Descriptor socket, ProcessLife life, pid_t child, size_t maxPayloadBytes,
             ServerEvents& events)
      : number_(number),
        socket_(std::move(socket)),
        life_(std::move(life)),
        lifeKnown_(life_.known()),
        child_(child),
        maxPayloadBytes_(maxPayloadBytes),
        events_(events) {}

  // Reads some of the bytes that have arrived and reports complete frames and the end of the stream. Returns false if
  // there may be more.
  bool read();
  // Number of bytes read so far, and of those that had been sent by now. An ended stream brings no more.
  uint64_t received() const { return received_; }
  uint64_t arrived() const;
  // Handles the process's exit: reports its remaining frames first. Called again until the exit is reported.
  void died();
  void queue(OutgoingFrame frame);
  void write();
  // Ends the connection once all queued frames are sent. No `closed` event follows.
  void disconnect();

  uint32_t number() const { return number_; }
  // Sets a separate descriptor for writing, over which no descriptors can be passed. Both are non-blocking.
  void setOutput(Descriptor output) { output_ = std::move(output); }
  // Sets a child's stderr, whose last bytes are reported with the child's exit. It is non-blocking.
  void setStandardError(Descriptor standardError) { standardError_ = std::move(standardError); }
  void readStandardError();

  // What the stream begins with is text of a login, up to the first StagingMessage.alive (launcher/remote/staging).
  void skipText() { skipsText_ = true; }

  int socket() const { return socket_.get(); }  // -1: closed
  int output() const { return output_.valid() ? output_.get() : socket_.get(); }
  // Kills the process if it is a child of this process; `withProcessGroup`: also its process group.
  void kill(bool withProcessGroup) const;
  const ProcessLife& life() const { return life_; }
  int standardError() const { return standardError_.get(); }
  bool unsent() const { return !outgoing_.empty(); }
  // True if neither frames nor an exit can follow.
  bool over() const { return !socket_.valid() && !life_.known(); }

  uint32_t watched = 0;  // epoll events that the server watches on the socket

 private:
  void cutFrames();
  bool cutText();
  void reportExit();
  void close(const std::string& reason);
  bool sendSome(OutgoingFrame& frame);
  void forgetUnsent();

  uint32_t number_;
  Descriptor socket_;
  Descriptor output_;
  Descriptor standardError_;
  std::string standardErrorTail_;
  ProcessLife life_;
  uint64_t received_ = 0;
  std::optional<uint64_t> arrivedAtExit_;  // bytes that the process had sent when it ended
  const bool lifeKnown_;
  const pid_t child_;
  size_t maxPayloadBytes_;
  ServerEvents& events_;
  std::vector<uint8_t> incoming_;
  bool skipsText_ = false;
  size_t textBytes_ = 0;
  std::string text_;  // its first line
  std::deque<OutgoingFrame> outgoing_;
  size_t unsentBytes_ = 0;
  bool disconnecting_ = false;
};

}  // namespace ncclrun::binding
