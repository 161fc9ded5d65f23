#include "binding/server_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace ncclrun::binding {
namespace {

// What epoll reports as ready: the tag holds a connection's number and one of these.
enum Ready : uint64_t { kListener, kWakeUp, kSocket, kExit, kStandardError };
constexpr int kReadyBits = 3;
constexpr int kExitPollMs = 20;  // interval at which the thread polls processes without a pidfd
constexpr int kMaxAccepts = 64;  // per event, so that a flood of connections does not starve the others
uint64_t tagOf(uint32_t number, Ready ready) { return uint64_t{number} << kReadyBits | ready; }

// Returns 0 or errno. Ignores an invalid descriptor.
int makeNonBlocking(const Descriptor& descriptor) {
  if (!descriptor.valid()) return 0;
  const int flags = fcntl(descriptor.get(), F_GETFL);
  return flags < 0 || fcntl(descriptor.get(), F_SETFL, flags | O_NONBLOCK) < 0 ? errno : 0;
}

// True if the process or the machine has no descriptor left.
bool isOutOfDescriptors(int error) { return error == EMFILE || error == ENFILE; }

}  // namespace

int ServerThread::prepare() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  wakeUp_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !wakeUp_.valid()) return errno;
  watch(wakeUp_.get(), EPOLLIN, tagOf(0, kWakeUp), EPOLL_CTL_ADD);
  return 0;
}

int ServerThread::listen(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  memcpy(address.sun_path, path.data(), path.size());

  if (const int error = prepare(); error != 0) return error;
  listener_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid()) return errno;
  spare_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  // The file gets the socket's own mode: nobody else may connect, whatever the umask.
  if (fchmod(listener_.get(), 0600) < 0) return errno;
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) return errno;
  path_ = path;
  if (::listen(listener_.get(), SOMAXCONN) < 0) return errno;
  watch(listener_.get(), EPOLLIN, tagOf(0, kListener), EPOLL_CTL_ADD);
  return startThread();
}

int ServerThread::listen(Descriptor listener) {
  if (const int error = prepare(); error != 0) return error;
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(listener.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0) return errno;
  if (listens == 0) return EINVAL;
  if (const int error = makeNonBlocking(listener); error != 0) return error;
  fcntl(listener.get(), F_SETFD, FD_CLOEXEC);
  listener_ = std::move(listener);
  spare_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  watch(listener_.get(), EPOLLIN, tagOf(0, kListener), EPOLL_CTL_ADD);
  return startThread();
}

int ServerThread::serveChild(ChildProcess child) {
  if (const int error = prepare(); error != 0) return error;
  for (const Descriptor* end : {&child.input, &child.output, &child.standardError}) {
    if (const int error = makeNonBlocking(*end); error != 0) return error;
  }
  child_ = child.pid;
  Connection& connection = serveNew(std::move(child.input), ProcessLife::ofChild(child.pid), child.pid);
  if (child.output.valid()) connection.setOutput(std::move(child.output));
  if (child.standardError.valid()) {
    watch(child.standardError.get(), EPOLLIN, tagOf(connection.number(), kStandardError), EPOLL_CTL_ADD);
    connection.setStandardError(std::move(child.standardError));
    connection.skipText();
  }
  return startThread();
}

int ServerThread::serveStreams(Descriptor input, Descriptor output) {
  if (const int error = prepare(); error != 0) return error;
  for (const Descriptor* end : {&input, &output}) {
    if (!end->valid()) return EBADF;
    if (const int error = makeNonBlocking(*end); error != 0) return error;
  }
  serveNew(std::move(input), {}, 0).setOutput(std::move(output));
  return startThread();
}

// Starts the thread with all signals blocked, because the event loop handles them. Returns 0 or errno.
int ServerThread::startThread() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  try {
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "ncclrun-server");
  } catch (const std::system_error& refused) {
    error = refused.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

void ServerThread::stop() {
  if (thread_.joinable()) {
    stopping_.store(true);
    wake();
    thread_.join();
  }
  connections_.clear();
  listener_.reset();
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
}

void ServerThread::send(uint32_t connection, OutgoingFrame frame) {
  // std::function requires a copyable closure, but a frame can only be moved.
  auto held = std::make_shared<OutgoingFrame>(std::move(frame));
  post([this, connection, held] {
    if (Connection* found = find(connection)) found->queue(std::move(*held));
    settle(connection);
  });
}

void ServerThread::disconnect(uint32_t connection) {
  post([this, connection] {
    if (Connection* found = find(connection)) found->disconnect();
    settle(connection);
  });
}

void ServerThread::catchUp() {
  post([this] {
    acceptSome();  // who has connected and spoken counts, too
    std::map<uint32_t, uint64_t>& arrived = behind_.emplace_back();
    for (const auto& [number, connection] : connections_) arrived.emplace(number, connection.arrived());
  });
}

void ServerThread::killChild(bool withProcessGroup) {
  post([this, withProcessGroup] {
    if (Connection* child = find(1)) child->kill(withProcessGroup);
  });
}

// waitid() fails for a child that has been reaped.
pid_t ServerThread::stoppedChild() const {
  siginfo_t state = {};
  const pid_t child = child_;
  const bool isStopped =
      child > 0 && waitid(P_PID, static_cast<id_t>(child), &state, WSTOPPED | WNOHANG | WNOWAIT) == 0;
  return isStopped ? state.si_pid : 0;
}

void ServerThread::post(Command command) {
  {
    std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wake();
}

void ServerThread::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = write(wakeUp_.get(), &one, sizeof one);
}

void ServerThread::run() {
  while (!stopping_.load()) {
    if (events_.isFull()) {  // sleep until the event loop has drained the queue
      pollfd wakeUp = {.fd = wakeUp_.get(), .events = POLLIN, .revents = 0};
      poll(&wakeUp, 1, -1);
      runCommands();
      continue;
    }
    reportCaughtUp();
    epoll_event ready[64];
    const int count = epoll_wait(epoll_.get(), ready, 64, pollsForExits_ ? kExitPollMs : -1);
    for (int i = 0; i < count; ++i) serve(ready[i].data.u64, ready[i].events);
    if (pollsForExits_) pollExits();
  }
  runCommands();
}

void ServerThread::serve(uint64_t tag, uint32_t events) {
  const auto number = static_cast<uint32_t>(tag >> kReadyBits);
  const auto ready = static_cast<Ready>(tag & ((1 << kReadyBits) - 1));
  if (ready == kListener) return acceptSome();
  if (ready == kWakeUp) return runCommands();
  Connection* connection = find(number);
  if (connection == nullptr) return;
  if (ready == kExit) {
    connection->died();
  } else if (ready == kStandardError) {
    connection->readStandardError();
  } else {
    if ((events & (EPOLLOUT | EPOLLERR)) != 0) connection->write();
    if ((events & ~EPOLLOUT) != 0) connection->read();
  }
  settle(number);
}

// Polls the processes without a pidfd. An ended process stays in the list until its unread frames have been reported.
void ServerThread::pollExits() {
  std::vector<uint32_t> ended;
  pollsForExits_ = false;
  for (auto& [number, connection] : connections_) {
    if (!connection.life().needsPolling()) continue;
    pollsForExits_ = true;
    if (!connection.life().hasEnded()) continue;
    connection.died();
    ended.push_back(number);
  }
  for (const uint32_t number : ended) settle(number);
}

// Bytes are counted, because a process may write without end. An earlier catchUp() waits for no more than a later one.
void ServerThread::reportCaughtUp() {
  for (; !behind_.empty(); behind_.pop_front()) {
    std::erase_if(behind_.front(), [this](const auto& one) {
      const Connection* connection = find(one.first);
      return connection == nullptr || connection->socket() < 0 || connection->received() >= one.second;
    });
    if (!behind_.front().empty()) return;
    events_.add({.type = ServerEvent::Type::caughtUp, .connection = 0, .payload = {}, .text = {}});
  }
}

void ServerThread::runCommands() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wakeUp_.get(), &count, sizeof count);
  std::vector<Command> commands;
  {
    std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (const Command& command : commands) command();
}

void ServerThread::acceptSome() {
  for (int accepted = 0; accepted < kMaxAccepts; ++accepted) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      admit(std::move(socket));
      continue;
    }
    const int error = errno;
    if (error == EINTR || error == ECONNABORTED) continue;
    // Without a descriptor accept4 fails before it looks whether anybody waits.
    pollfd waiting = {.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (!isOutOfDescriptors(error) || poll(&waiting, 1, 0) != 1 || !refuseConnection(error)) return;
  }
}

// Refuses a connection for which there is no descriptor; else epoll would report the listener as ready for ever.
// Returns false if even that failed; then the listener is closed, so that waiting processes get an error.
bool ServerThread::refuseConnection(int error) {
  events_.add({.type = ServerEvent::Type::refused, .connection = 0, .payload = {}, .text = strerror(error)});
  spare_.reset();
  errno = 0;
  const bool came = Descriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid();
  if (!came && isOutOfDescriptors(errno)) listener_.reset();
  spare_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return listener_.valid();
}

void ServerThread::admit(Descriptor socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return;
  if (peer.uid != geteuid() && peer.uid != 0) return;  // even if somebody has changed the mode of the socket's file

  events_.add({.type = ServerEvent::Type::connected,
               .connection = lastNumber_ + 1,
               .pid = peer.pid,
               .payload = {},
               .text = {}});
  ProcessLife life = ProcessLife::ofPeer(socket.get(), peer.pid);
  serveNew(std::move(socket), std::move(life), 0);
}

Connection& ServerThread::serveNew(Descriptor socket, ProcessLife life, pid_t child) {
  const uint32_t number = ++lastNumber_;
  Connection& connection =
      connections_.try_emplace(number, number, std::move(socket), std::move(life), child, maxPayloadBytes_, events_)
          .first->second;
  connection.watched = EPOLLIN;
  watch(connection.socket(), EPOLLIN, tagOf(number, kSocket), EPOLL_CTL_ADD);
  const ProcessLife& watched = connection.life();
  if (watched.descriptor() >= 0) watch(watched.descriptor(), EPOLLIN, tagOf(number, kExit), EPOLL_CTL_ADD);
  pollsForExits_ = pollsForExits_ || watched.needsPolling();
  return connection;
}

// Called after every event of a connection: updates the epoll events that it needs, or removes it.
void ServerThread::settle(uint32_t number) {
  Connection* connection = find(number);
  if (connection == nullptr) return;
  if (connection->over()) {
    connections_.erase(number);
    return;
  }
  const uint32_t wanted = connection->unsent() ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (connection->socket() < 0 || wanted == connection->watched) return;
  if (connection->output() == connection->socket()) {
    watch(connection->socket(), wanted, tagOf(number, kSocket), EPOLL_CTL_MOD);
  } else {  // the output is a separate descriptor, watched only while frames are unsent
    const bool wait = connection->unsent();
    watch(connection->output(), EPOLLOUT, tagOf(number, kSocket), wait ? EPOLL_CTL_ADD : EPOLL_CTL_DEL);
  }
  connection->watched = wanted;
}

Connection* ServerThread::find(uint32_t number) {
  const auto found = connections_.find(number);
  return found == connections_.end() ? nullptr : &found->second;
}

void ServerThread::watch(int fd, uint32_t events, uint64_t tag, int operation) {
  epoll_event event = {.events = events, .data = {.u64 = tag}};
  epoll_ctl(epoll_.get(), operation, fd, &event);
}

}  // namespace ncclrun::binding
