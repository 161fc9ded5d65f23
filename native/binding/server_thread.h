// A thread that serves a Unix socket: it accepts processes of the same user, reports their frames and exits, and sends
// them frames.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "binding/child_process.h"
#include "binding/connection.h"
#include "binding/server_event.h"

namespace ncclrun::binding {

class ServerThread {
 public:
  ServerThread(size_t maxPayloadBytes, ServerEvents& events) : maxPayloadBytes_(maxPayloadBytes), events_(events) {}
  ~ServerThread() { stop(); }

  // Listens and starts the thread. Returns 0 or errno.
  int listen(const std::string& path);
  // Takes over a socket that listens already and starts the thread.
  int listen(Descriptor listener);
  // Serves one child process instead, as connection 1, and reaps it. Returns 0 or errno.
  int serveChild(ChildProcess child);
  // Serves the other end of two pipes or sockets, as connection 1. Returns 0 or errno.
  int serveStreams(Descriptor input, Descriptor output);
  // Sends queued frames as far as the sockets have room, ends the thread and all connections, removes the socket. May
  // be called again.
  void stop();

  // Sends SIGKILL to the child if it is still alive; `withProcessGroup`: also to its process group.
  void killChild(bool withProcessGroup);
  // Returns the child's pid if a signal has stopped it, else 0.
  pid_t stoppedChild() const;

  // Queues a frame. Called from any thread; never blocks on a peer. If the connection has ended, the frame is dropped.
  void send(uint32_t connection, OutgoingFrame frame);
  void disconnect(uint32_t connection);
  // Reports `caughtUp` after every frame that anyone had sent before this call. What other sockets and processes say
  // reaches the event loop in any order; this is how it learns what had happened on our sockets before.
  void catchUp();
  // Resumes reading after the event loop has drained a full queue of events.
  void resume() { wake(); }

 private:
  int prepare();
  int startThread();
  using Command = std::function<void()>;
  void post(Command command);
  void wake();

  void run();
  void runCommands();
  void pollExits();
  void reportCaughtUp();
  void acceptSome();
  bool refuseConnection(int error);
  void admit(Descriptor socket);
  Connection& serveNew(Descriptor socket, ProcessLife life, pid_t child);
  void serve(uint64_t tag, uint32_t events);
  void settle(uint32_t number);
  Connection* find(uint32_t number);
  void watch(int fd, uint32_t events, uint64_t tag, int operation);

  size_t maxPayloadBytes_;
  ServerEvents& events_;
  std::string path_;
  Descriptor listener_;
  Descriptor epoll_;
  Descriptor wakeUp_;
  Descriptor spare_;  // closed for a moment to accept and refuse a connection when descriptors have run out
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<pid_t> child_{0};

  std::mutex mutex_;
  std::vector<Command> commands_;

  std::map<uint32_t, Connection> connections_;       // used by the thread only
  std::deque<std::map<uint32_t, uint64_t>> behind_;  // for each catchUp(): the bytes to read first, by connection
  uint32_t lastNumber_ = 0;
  bool pollsForExits_ = false;  // some process has no pidfd
};

}  // namespace ncclrun::binding
