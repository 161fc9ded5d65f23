#include "wire.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "copy.h"
#include "faults.h"

namespace stand_in_verbs {
namespace {

// In front of every message and every answer; the bytes of the message, or what a read got, follow.
struct Frame {
  Message message;
  Answer::Kind kind;
  uint8_t isAnswer, status, timer;
  uint32_t bytes;
};

struct Connection {
  int descriptor = -1;
  std::vector<uint8_t> in, out;
  size_t inBytes = 0, outSent = 0;
  uint64_t flushed = 0;  // bytes of `out`, since the beginning
  uint32_t outOf = 0;    // queue pair of the message that is the last one in it
  bool isOver = false;
  std::set<uint32_t> waiting;  // queue pairs that found it full
};

}  // namespace

struct Wire {
  int directory = -1, listener = -1, watch = -1;
  std::map<uint32_t, Connection> outgoing;  // by the other process's number
  std::list<Connection> incoming;
  std::vector<int> ended;  // descriptors that the thread may still wait for
  off_t controlRead = 0;
  std::string line;
};

namespace {

std::atomic<bool> hasConnections{false};

sockaddr_un addressOf(int directory, uint32_t slot) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // By way of the descriptor: the directory's own path may be too long.
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%u", directory, slot);
  return address;
}

int makeSocket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

void end(Wire& wire, Connection& connection) {
  if (connection.isOver) return;
  wire.ended.push_back(connection.descriptor);
  connection.isOver = true;
  if (world().wake >= 0) wakeProgress();  // the thread closes it, which may wait for it now
}

// Sends what is left over.
void flush(Wire& wire, Connection& connection) {
  while (!connection.isOver && connection.outSent < connection.out.size()) {
    const ssize_t sent = send(connection.descriptor, connection.out.data() + connection.outSent,
                              connection.out.size() - connection.outSent, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) end(wire, connection);
    if (sent <= 0) return;
    connection.outSent += static_cast<size_t>(sent);
    connection.flushed += static_cast<size_t>(sent);
  }
  connection.out.clear();
  connection.outSent = 0;
}

void write(Wire& wire, Connection& connection, const Frame& frame, const std::vector<Source>& sources) {
  std::vector<iovec> parts = {{const_cast<Frame*>(&frame), sizeof frame}};
  uint8_t small[kPolledBytes];  // what is small may be words that the program writes at the same time
  uint8_t* copied = small;
  for (const Source& source : sources) {
    if (frame.bytes > sizeof small) {
      parts.push_back({const_cast<uint8_t*>(source.data), source.bytes});
      continue;
    }
    copyAsDevice(copied, source.data, source.bytes);
    parts.push_back({copied, source.bytes});
    copied += source.bytes;
  }
  size_t sent = 0;
  if (connection.out.empty() && parts.size() <= 64) {
    msghdr header = {};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    const ssize_t result = sendmsg(connection.descriptor, &header, MSG_NOSIGNAL);
    if (result < 0 && errno != EAGAIN) end(wire, connection);
    sent = result < 0 ? 0 : static_cast<size_t>(result);
  }
  if (connection.isOver) return;
  for (const iovec& part : parts) {
    const size_t skipped = std::min(sent, part.iov_len);
    const auto* const data = static_cast<const uint8_t*>(part.iov_base);
    connection.out.insert(connection.out.end(), data + skipped, data + part.iov_len);
    sent -= skipped;
  }
  if (!connection.out.empty()) wakeProgress();  // it waits for room
}

void onFrame(Wire& wire, Connection& connection, const Frame& frame, const uint8_t* data) {
  std::vector<Source> sources;
  if (frame.bytes > 0) sources.push_back({data, frame.bytes});
  if (frame.isAnswer == 0) {
    const Answer answer = respond(frame.message, sources);
    if (answer.kind == Answer::kLost) return;
    Frame reply = {frame.message, answer.kind, 1, answer.status, answer.timer, 0};
    sources.clear();
    if (answer.data != nullptr) sources.push_back({answer.data, frame.message.bytes});
    reply.bytes = answer.data == nullptr ? 0 : frame.message.bytes;
    write(wire, connection, reply, sources);
    return;
  }
  const auto found = world().pairs.find(frame.message.from);
  if (found == world().pairs.end()) return;
  QueuePair& pair = *found->second;
  if (pair.attributes.peer != frame.message.to || isSwallowed(*pair.adapter, pair.port())) return;
  const Answer answer = {.kind = frame.kind, .status = frame.status, .timer = frame.timer, .data = nullptr};
  onAnswer(pair, frame.message.number, answer, sources);
}

// Carries out the whole frames that were read, and keeps the rest.
void readFrames(Wire& wire, Connection& connection) {
  size_t at = 0;
  while (!connection.isOver && connection.inBytes - at >= sizeof(Frame)) {
    Frame frame;
    std::memcpy(&frame, connection.in.data() + at, sizeof frame);
    const size_t all = sizeof frame + frame.bytes;
    if (connection.inBytes - at < all) {
      if (connection.in.size() < all) connection.in.resize(at + all);
      break;
    }
    onFrame(wire, connection, frame, connection.in.data() + at + sizeof frame);
    at += all;
  }
  if (at == 0) return;
  std::memmove(connection.in.data(), connection.in.data() + at, connection.inBytes - at);
  connection.inBytes -= at;
}

void receive(Wire& wire, Connection& connection) {
  constexpr size_t kLeast = 64 << 10;
  while (!connection.isOver) {
    if (connection.in.size() - connection.inBytes < kLeast) connection.in.resize(connection.inBytes + kLeast);
    const size_t room = connection.in.size() - connection.inBytes;
    const ssize_t got = recv(connection.descriptor, connection.in.data() + connection.inBytes, room, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) end(wire, connection);
    if (got <= 0) return;
    connection.inBytes += static_cast<size_t>(got);
    readFrames(wire, connection);
    if (static_cast<size_t>(got) < room) return;
  }
}

void serve(Wire& wire, Connection& connection) {
  receive(wire, connection);
  flush(wire, connection);
  if (!connection.out.empty() || connection.waiting.empty()) return;
  const std::set<uint32_t> waiting = std::move(connection.waiting);
  connection.waiting.clear();
  for (const uint32_t number : waiting) {
    const auto found = world().pairs.find(number);
    if (found != world().pairs.end()) pump(*found->second);
  }
}

void serveAll(Wire& wire) {
  std::vector<uint32_t> slots;
  for (const auto& [slot, connection] : wire.outgoing) slots.push_back(slot);
  for (const uint32_t slot : slots) {
    const auto found = wire.outgoing.find(slot);
    if (found == wire.outgoing.end()) continue;
    serve(wire, found->second);
  }
  for (Connection& connection : wire.incoming) serve(wire, connection);
}

// Null: there is no such process.
Connection* connectTo(Wire& wire, uint32_t slot) {
  const auto found = wire.outgoing.find(slot);
  if (found != wire.outgoing.end()) return found->second.isOver ? nullptr : &found->second;
  if (wire.listener < 0) return nullptr;
  const sockaddr_un address = addressOf(wire.directory, slot);
  const int descriptor = makeSocket();
  if (connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(descriptor);
    return nullptr;
  }
  Connection& connection = wire.outgoing[slot];
  connection.descriptor = descriptor;
  hasConnections = true;
  wakeProgress();
  return &connection;
}

void acceptAll(Wire& wire) {
  for (;;) {
    const int descriptor = accept4(wire.listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) return;
    wire.incoming.emplace_back().descriptor = descriptor;
    hasConnections = true;
  }
}

bool isForUs(std::string& line) {
  if (line.empty() || line[0] != '@') return true;
  const size_t space = line.find(' ');
  const std::string name = line.substr(1, space == std::string::npos ? space : space - 1);
  line = space == std::string::npos ? "" : line.substr(space);
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const char* const own = std::getenv("STAND_IN_VERBS_NAME");
  return name == host || (own != nullptr && name == own);
}

// Carries out what was added to `control`.
void readControl(Wire& wire) {
  const int file = openat(wire.directory, "control", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char bytes[4096];
  for (ssize_t got; (got = pread(file, bytes, sizeof bytes, wire.controlRead)) > 0; wire.controlRead += got) {
    for (ssize_t index = 0; index < got; ++index) {
      if (bytes[index] != '\n') {
        wire.line += bytes[index];
        continue;
      }
      std::string line = std::move(wire.line);
      wire.line.clear();
      const std::string whole = line;
      if (isForUs(line) && !plantLine(line)) {
        std::fprintf(stderr, "stand-in verbs: cannot read this line of control: %s\n", whole.c_str());
      }
    }
  }
  close(file);
}

void listenHere(Wire& wire) {
  World& all = world();
  wire.listener = makeSocket();
  for (uint32_t slot = 1; slot < 4096; ++slot) {
    const sockaddr_un address = addressOf(wire.directory, slot);
    if (bind(wire.listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) continue;
    listen(wire.listener, 4095);
    all.slot = slot;
    return;
  }
  std::fprintf(stderr, "stand-in verbs: no socket can be made in STAND_IN_VERBS_DIR: %s\n", std::strerror(errno));
  std::abort();
}

}  // namespace

void openConnections() {
  World& all = world();
  if (all.wire == nullptr) all.wire = std::make_shared<Wire>();
  Wire& wire = *all.wire;
  std::random_device device;
  all.lastPair = device() % 4095;  // queue pairs of a process that took the number of an ended one differ from its
  const char* const path = std::getenv("STAND_IN_VERBS_DIR");
  if (path == nullptr || *path == '\0') {
    all.slot = 1 + static_cast<uint32_t>(getpid()) % 4095;
    return;
  }
  wire.directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  listenHere(wire);
  wire.watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  inotify_add_watch(wire.watch, path, IN_MODIFY | IN_MOVED_TO | IN_CLOSE_WRITE);
  readControl(wire);
}

void closeConnections() {
  Wire& wire = *world().wire;
  for (auto& [slot, connection] : wire.outgoing) end(wire, connection);
  for (Connection& connection : wire.incoming) end(wire, connection);
  for (const int descriptor : wire.ended) close(descriptor);
  wire.ended.clear();
  wire.outgoing.clear();
  wire.incoming.clear();
  hasConnections = false;
  if (wire.listener < 0) return;
  unlinkat(wire.directory, std::to_string(world().slot).c_str(), 0);
  close(wire.listener);
  close(wire.watch);
  close(wire.directory);
  wire.listener = wire.watch = wire.directory = -1;
}

void addConnections(std::vector<pollfd>& descriptors) {
  const Wire& wire = *world().wire;
  const auto add = [&](const Connection& connection) {
    const short wanted = connection.out.empty() ? POLLIN : POLLIN | POLLOUT;
    if (!connection.isOver) descriptors.push_back({connection.descriptor, wanted, 0});
  };
  if (wire.listener >= 0) descriptors.push_back({wire.listener, POLLIN, 0});
  if (wire.watch >= 0) descriptors.push_back({wire.watch, POLLIN, 0});
  for (const auto& [slot, connection] : wire.outgoing) add(connection);
  for (const Connection& connection : wire.incoming) add(connection);
}

void serveConnections() {
  Wire& wire = *world().wire;
  for (const int descriptor : wire.ended) close(descriptor);
  wire.ended.clear();
  wire.incoming.remove_if([](const Connection& connection) { return connection.isOver; });
  std::erase_if(wire.outgoing, [](const auto& one) { return one.second.isOver; });
  if (wire.listener < 0) return;
  acceptAll(wire);
  char events[4096];
  bool isChanged = false;
  while (read(wire.watch, events, sizeof events) > 0) isChanged = true;
  if (isChanged) readControl(wire);
  serveAll(wire);
}

bool transmit(const Message& message, const std::vector<Source>& sources) {
  Wire& wire = *world().wire;
  Connection* const connection = connectTo(wire, message.to >> 12);
  if (connection == nullptr) return true;
  if (!connection->out.empty()) {
    connection->waiting.insert(message.from);
    return false;
  }
  Frame frame = {message, Answer::kLost, 0, 0, 0, 0};
  for (const Source& source : sources) frame.bytes += static_cast<uint32_t>(source.bytes);
  write(wire, *connection, frame, sources);
  connection->outOf = message.from;
  return true;
}

bool isMoving(QueuePair& pair) {
  const Wire& wire = *world().wire;
  const auto found = wire.outgoing.find(pair.attributes.peer >> 12);
  if (found == wire.outgoing.end() || found->second.out.empty()) return false;
  const Connection& connection = found->second;
  if (!pair.isBlocked && connection.outOf != pair.number) return false;
  return std::exchange(pair.flushed, connection.flushed) != connection.flushed;
}

void helpProgress() {
  thread_local unsigned calls = 0;
  if (!hasConnections.load(std::memory_order_relaxed) || ++calls % 8 != 0) return;
  World& all = world();
  const Lock lock(all.mutex, std::try_to_lock);
  if (lock.owns_lock() && all.wire != nullptr) serveAll(*all.wire);
}

}  // namespace stand_in_verbs
