// A Unix socket served by a thread of its own: accepts processes of our user, reports their frames and exits, sends
// them frames.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
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

  // Listens and starts the thread. 0 or errno.
  int listen(const std::string& path);
  // On a socket that listens already; it is ours from now on.
  int listen(Descriptor listener);
  // Serves one child of ours instead, as connection 1, and reaps it. 0 or errno.
  int serveChild(ChildProcess child);
  // Serves the other end of two pipes or sockets, as connection 1. 0 or errno.
  int serveStreams(Descriptor input, Descriptor output);
  // Sends what is queued if the sockets take it at once, ends the thread and all connections, removes the socket. May
  // be called again.
  void stop();

  // SIGKILL to the child, if it is still there.
  void killChild(bool withItsOwn);
  // The child's number if a signal has stopped it, else 0.
  pid_t stoppedChild() const;

  // From any thread; never blocks on a peer. A connection that is gone meanwhile loses the frame.
  void send(uint32_t connection, OutgoingFrame frame);
  void disconnect(uint32_t connection);
  // The event loop has taken events that were too many.
  void resume() { wake(); }

 private:
  int prepare();
  int startThread();
  using Command = std::function<void()>;
  void post(Command command);
  void wake();

  void run();
  void runCommands();
  void lookAtLives();
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
  Descriptor spare_;  // given up for a moment to refuse connections when descriptors have run out
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<pid_t> child_{0};

  std::mutex mutex_;
  std::vector<Command> commands_;

  std::map<uint32_t, Connection> connections_;  // of the thread
  uint32_t lastNumber_ = 0;
  bool asksForLives_ = false;  // some of them have no pidfd
};

}  // namespace ncclrun::binding
