// What verbs alone do between two processes that both poll: half the time of a round trip of writes with immediate,
// without and with a peer that advertises its room for each message, and the bandwidth of writes. The engine's backend
// is measured against it.
//
//   raw_verbs LIBRARY DEVICE DEVICE      both processes here
//   raw_verbs LIBRARY DEVICE PORT        waits for the other one, at a TCP port
//   raw_verbs LIBRARY DEVICE HOST:PORT
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "verbs/client/client.h"

using namespace stand_in_verbs;

namespace {

constexpr size_t kBytes = 4u << 20;
constexpr uint32_t kWindow = 16;  // writes on their way
constexpr size_t kRoom = kBytes / 2;  // where in its memory the peer says how many messages it has made room for
constexpr uint32_t kRoomBytes = 16;
using Clock = std::chrono::steady_clock;

void check(bool isFine, const char* what) {
  if (isFine) return;
  std::perror(what);
  std::_Exit(1);
}

struct Side {
  End own;
  Peer peer = {};
  int channel;
  bool isFirst;
  unsigned vain = 0;
  int received = 0, written = 0;  // completions that nobody waited for yet

  void meet() const {
    char byte = 0;
    check(send(channel, &byte, 1, 0) == 1 && recv(channel, &byte, 1, 0) == 1, "the other process");
  }
  // Polls until so many writes have ended that this process had not reaped before.
  void reap(int count) {
    for (written -= count; written < 0;) poll();
  }
  void poll() {
    Completion completion;
    if (own.poll(completion) == 0) {
      char byte = 0;
      if (++vain % (1 << 16) == 0) check(recv(channel, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0, "the other process");
      return;
    }
    if (completion.status != kSuccess) std::printf("status %d\n", completion.status);
    check(completion.status == kSuccess, "completion");
    ++(completion.opcode == kReceivedImmediate ? received : written);
  }
  // Waits for a message, and makes room for the next one. Completions of own writes may come before it.
  void take() {
    for (--received; received < 0;) poll();
    check(own.want() == 0, "ibv_post_recv");
  }
  void write(int opcode, uint32_t bytes) { check(own.post(opcode, peer, bytes) == 0, "ibv_post_send"); }
  // Tells the peer how many messages have room, by a write into its memory.
  void advertise(uint64_t messages) {
    const size_t offset = isFirst ? kRoom : kRoom + kRoomBytes;
    std::memcpy(own.data.data() + offset, &messages, sizeof messages);
    check(own.post(kWrite, peer, kRoomBytes, kSignaled, 7, 42, offset) == 0, "ibv_post_send");
  }
  void awaitRoom(uint64_t messages) {
    const size_t offset = isFirst ? kRoom + kRoomBytes : kRoom;
    while (*reinterpret_cast<const volatile uint64_t*>(own.data.data() + offset) < messages) poll();
  }
};

double microseconds(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// `advertises`: a message is not written before the peer has said that it has room for it, as the engine's protocol has
// it; each side says so once its own message is on the way.
void pingPong(Side& side, uint32_t bytes, int rounds, bool advertises) {
  std::vector<double> times;
  uint64_t message = 1;
  if (advertises) side.advertise(message), side.reap(1);
  for (int round = 0; round < rounds; ++round, ++message) {
    const auto start = Clock::now();
    if (!side.isFirst) side.take();
    if (advertises) side.awaitRoom(message);
    side.write(kWriteImmediate, bytes);
    if (side.isFirst) side.take();
    if (advertises) side.advertise(message + 1);
    side.reap(advertises ? 2 : 1);  // of its own writes
    times.push_back(microseconds(start) / 2);
  }
  side.meet();
  if (!side.isFirst) return;
  std::sort(times.begin(), times.end());
  std::printf("%8u B  %s %8.2f us (least %.2f, 90%% below %.2f)\n", bytes, advertises ? "advertised" : "one way",
              times[times.size() / 2], times[0], times[times.size() * 9 / 10]);
}

void bandwidth(Side& side, uint32_t bytes, uint32_t count) {
  side.meet();
  if (!side.isFirst) {
    side.take();
    return;
  }
  const auto start = Clock::now();
  uint32_t open = 0;
  for (uint32_t index = 1; index < count; ++index, ++open) {
    if (open == kWindow) side.reap(1), --open;
    side.write(kWrite, bytes);
  }
  side.write(kWriteImmediate, bytes);
  side.reap(static_cast<int>(open) + 1);
  std::printf("%8u B  %9.1f MB/s\n", bytes, static_cast<double>(bytes) * count / microseconds(start));
}

void run(const char* path, const char* device, int channel, bool isFirst) {
  const Library library = openLibrary(path);
  const Terms terms = {.timeout = 17, .retries = 6};
  Side side{.own = End(library, device, kBytes), .peer = {}, .channel = channel, .isFirst = isFirst};
  side.own.makePair(terms);
  const Peer self = side.own.self();
  check(send(channel, &self, sizeof self, 0) == sizeof self, "send");
  check(recv(channel, &side.peer, sizeof side.peer, MSG_WAITALL) == sizeof side.peer, "recv");
  check(side.own.connect(side.peer, terms) == 0, "ibv_modify_qp");
  check(side.own.want() == 0, "ibv_post_recv");
  side.meet();
  const char* const given = std::getenv("RAW_VERBS_ROUNDS");
  const int rounds = given == nullptr ? 1000 : std::max(std::atoi(given), 1);
  for (const uint32_t bytes : {8u, 4096u, 65536u, 1u << 20}) {
    pingPong(side, bytes, bytes < 65536 ? rounds : rounds / 10 + 1, false);
  }
  pingPong(side, 8, rounds, true);
  for (const uint32_t bytes : {65536u, 1u << 20}) bandwidth(side, bytes, static_cast<uint32_t>(rounds / 5 + 1));
}

int waitForPeer(uint16_t port) {
  const int listener = socket(AF_INET6, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  check(bind(listener, generic, sizeof address) == 0 && listen(listener, 1) == 0, "bind");
  return accept(listener, nullptr, nullptr);
}

int connectTo(const std::string& host, const std::string& port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  check(getaddrinfo(host.c_str(), port.c_str(), &hints, &found) == 0, host.c_str());
  int channel = -1;
  for (int tries = 0; channel < 0; ++tries) {  // it may not wait yet
    channel = socket(found->ai_family, SOCK_STREAM, 0);
    if (connect(channel, found->ai_addr, found->ai_addrlen) == 0) break;
    check(errno == ECONNREFUSED && tries < 1000, "connect");
    close(channel);
    channel = -1;
    usleep(10000);
  }
  freeaddrinfo(found);
  return channel;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string other = argv[3];
  const size_t colon = other.rfind(':');
  if (colon != std::string::npos) {
    run(argv[1], argv[2], connectTo(other.substr(0, colon), other.substr(colon + 1)), true);
    return 0;
  }
  if (other.find_first_not_of("0123456789") == std::string::npos) {
    run(argv[1], argv[2], waitForPeer(static_cast<uint16_t>(std::atoi(argv[3]))), false);
    return 0;
  }
  int channel[2];
  check(socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0, "socketpair");
  const pid_t child = fork();
  run(argv[1], child == 0 ? argv[3] : argv[2], channel[child == 0], child != 0);
  if (child == 0) std::_Exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
