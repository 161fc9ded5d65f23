// A backend of the network layer alone: messages one way, and a ping-pong of 8 bytes with both ends spinning. WAIT: "spin"
// or "sleep", what the caller does while a request is not complete.
//
//   net_transfers receive NETWORK WAIT BYTES MESSAGES         prints its handle, then MB/s
//   net_transfers send NETWORK HANDLE WAIT BYTES MESSAGES
//   net_transfers pong NETWORK ROUNDS                         prints its handle
//   net_transfers ping NETWORK HANDLE ROUNDS                  prints microseconds one way
//
// NETWORK: sockets,ADDRESS[,SOCKETS,HELPERS] or verbs,CARD,GID
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/socket/socket_network.h"
#include "net/verbs/verbs_network.h"

using namespace ncclrun;
using namespace ncclrun::net;

namespace {

constexpr size_t kDepth = 8;  // messages under way, each with a buffer of its own; fewer of large ones
constexpr size_t kFootprint = size_t(128) << 20;
constexpr long kWarmUp = 4;   // the part of the messages that goes ahead, and every buffer once, outside the time taken

void must(const Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "net_transfers: %s\n", status.sentence.c_str());
  exit(1);
}

std::vector<std::string> parts(const char* text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) all.push_back(part);
  return all;
}

std::unique_ptr<Network> open(const char* text) {
  const std::vector<std::string> words = parts(text);
  if (words.size() == 3 && words[0] == "verbs") {
    std::unique_ptr<VerbsNetwork> network;
    const VerbsPort port{.card = words[1], .port = 1, .gid = words[2]};
    must(VerbsNetwork::make({.ports = {port}, .address = "127.0.0.1"}, network));
    return network;
  }
  if (words.size() < 2 || words[0] != "sockets") exit(2);
  std::unique_ptr<SocketNetwork> network;
  must(SocketNetwork::make({.devices = {{.interface = "eth0", .address = words[1]}},
                            .sockets = words.size() < 4 ? 1 : uint32_t(std::stoul(words[2])),
                            .helpers = words.size() < 4 ? 0 : uint32_t(std::stoul(words[3]))},
                           network));
  return network;
}

void print(const Handle& handle) {
  for (const std::byte byte : handle) printf("%02x", unsigned(byte));
  printf("\n");
  fflush(stdout);
}

Handle parse(const char* text) {
  Handle handle = {};
  for (size_t i = 0; i < handle.size(); i++) {
    unsigned byte = 0;
    if (sscanf(text + 2 * i, "%2x", &byte) != 1) exit(2);
    handle[i] = std::byte(byte);
  }
  return handle;
}

std::unique_ptr<Receiver> accept(Listener& listener) {
  std::unique_ptr<Receiver> receiver;
  while (receiver == nullptr) must(listener.accept(receiver));
  return receiver;
}

std::unique_ptr<Sender> connect(Network& network, const Handle& handle) {
  std::unique_ptr<Connector> connector;
  must(network.connect(0, handle, connector));
  std::unique_ptr<Sender> sender;
  while (sender == nullptr) must(connector->connect(sender));
  return sender;
}

bool sleeps = false;

void wait(Network& network, Connection& connection, Request* request) {
  for (;;) {
    bool done = false;
    must(connection.test(request, done, {}));
    if (done) return;
    if (!sleeps) continue;
    pollfd event{.fd = network.eventDescriptor(), .events = POLLIN, .revents = 0};
    poll(&event, 1, -1);
    network.clearEvents();
  }
}

// Begins transfer after transfer, at most `depth` at a time; `begin` sets the request, or leaves it null for "not now".
template <class Begin>
void stream(Network& network, Connection& connection, size_t depth, long messages, Begin&& begin) {
  std::deque<Request*> open;
  for (long i = 0; i < messages; i++) {
    if (open.size() == depth) {
      wait(network, connection, open.front());
      open.pop_front();
    }
    Request* request = nullptr;
    while (request == nullptr) must(begin(size_t(i) % depth, request));
    open.push_back(request);
  }
  for (Request* request : open) wait(network, connection, request);
}

// Memory of a connection, registered with it.
class Memory {
 public:
  Memory(Connection& connection, size_t bytes) : connection_(connection), data_(bytes, std::byte{1}) {
    must(connection_.registerMemory({.address = data_.data(), .bytes = bytes}, registration_));
  }
  ~Memory() { must(connection_.deregisterMemory(registration_)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() { return data_.data(); }
  Registration registration() const { return registration_; }

 private:
  Connection& connection_;
  std::vector<std::byte> data_;
  Registration registration_;
};

// The buffers of the messages under way.
struct Buffers {
  const size_t bytes;  // of one
  const size_t depth;
  Memory memory;

  Buffers(Connection& connection, const char* size)
      : bytes(strtoul(size, nullptr, 10)),
        depth(std::min(kDepth, kFootprint / bytes)),
        memory(connection, bytes * depth) {}
  std::byte* at(size_t slot) { return memory.data() + slot * bytes; }
};

void sendMessages(Network& network, Sender& sender, Buffers& buffers, long messages) {
  stream(network, sender, buffers.depth, messages, [&](size_t slot, Request*& request) {
    return sender.isend(buffers.at(slot), buffers.bytes, 0, buffers.memory.registration(), request);
  });
}

void receiveMessages(Network& network, Receiver& receiver, Buffers& buffers, long messages) {
  stream(network, receiver, buffers.depth, messages, [&](size_t slot, Request*& request) {
    const Buffer buffer{buffers.at(slot), buffers.bytes, 0, buffers.memory.registration()};
    return receiver.irecv({&buffer, 1}, request);
  });
}

Request* receiveOne(Receiver& receiver, Memory& memory, size_t bytes) {
  const Buffer buffer{memory.data(), bytes, 0, memory.registration()};
  Request* request = nullptr;
  while (request == nullptr) must(receiver.irecv({&buffer, 1}, request));
  return request;
}

Request* sendOne(Sender& sender, Memory& memory, size_t bytes) {
  Request* request = nullptr;
  while (request == nullptr) must(sender.isend(memory.data(), bytes, 0, memory.registration(), request));
  return request;
}

// Listens, and prints where.
std::unique_ptr<Receiver> acceptFrom(Network& network) {
  std::unique_ptr<Listener> listener;
  Handle handle = {};
  must(network.listen(0, handle, listener));
  print(handle);
  return accept(*listener);
}

// Receives of 8 bytes posted ahead, as the engine posts one for each of its slots.
class Arrivals {
 public:
  Arrivals(Network& network, Receiver& receiver, long rounds)
      : network_(network), receiver_(receiver), memory_(receiver, sizeof(uint64_t)), left_(rounds) {
    while (posted_.size() < kDepth && left_ > 0) post();
  }

  void waitForOne() {
    wait(network_, receiver_, posted_.front());
    posted_.pop_front();
  }
  void postNext() {
    if (left_ > 0) post();
  }

 private:
  void post() {
    posted_.push_back(receiveOne(receiver_, memory_, sizeof(uint64_t)));
    left_--;
  }

  Network& network_;
  Receiver& receiver_;
  Memory memory_;
  std::deque<Request*> posted_;
  long left_;
};

void pong(Network& network, long rounds) {
  const auto receiver = acceptFrom(network);
  Memory in(*receiver, kHandleBytes);
  wait(network, *receiver, receiveOne(*receiver, in, kHandleBytes));
  Handle handle = {};
  memcpy(handle.data(), in.data(), handle.size());
  Arrivals arrivals(network, *receiver, rounds);
  const auto sender = connect(network, handle);
  network.pair(*sender, *receiver);
  Memory out(*sender, sizeof(uint64_t));
  for (long i = 0; i < rounds; i++) {
    arrivals.waitForOne();
    Request* const sent = sendOne(*sender, out, sizeof(uint64_t));
    arrivals.postNext();
    wait(network, *sender, sent);
  }
}

void ping(Network& network, const Handle& peer, long rounds) {
  const auto sender = connect(network, peer);
  std::unique_ptr<Listener> listener;
  Handle handle = {};
  must(network.listen(0, handle, listener));
  Memory out(*sender, kHandleBytes);
  memcpy(out.data(), handle.data(), handle.size());
  wait(network, *sender, sendOne(*sender, out, handle.size()));
  const auto receiver = accept(*listener);
  network.pair(*sender, *receiver);
  Arrivals arrivals(network, *receiver, rounds);
  const uint64_t begin = nowNanoseconds();
  for (long i = 0; i < rounds; i++) {
    Request* const sent = sendOne(*sender, out, sizeof(uint64_t));
    arrivals.waitForOne();
    arrivals.postNext();
    wait(network, *sender, sent);
  }
  printf("%.3f\n", double(nowNanoseconds() - begin) / double(rounds) / 2 / 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const auto is = [&](const char* name, int words) { return argc == words && strcmp(argv[1], name) == 0; };
  if (is("receive", 6)) {
    sleeps = strcmp(argv[3], "sleep") == 0;
    const auto network = open(argv[2]);
    const auto receiver = acceptFrom(*network);
    Buffers buffers(*receiver, argv[4]);
    const long messages = atol(argv[5]);
    receiveMessages(*network, *receiver, buffers, messages / kWarmUp + long(buffers.depth));
    const uint64_t begin = nowNanoseconds();
    receiveMessages(*network, *receiver, buffers, messages);
    printf("%.1f\n", double(buffers.bytes) * double(messages) / double(nowNanoseconds() - begin) * 1e3);
  } else if (is("send", 7)) {
    sleeps = strcmp(argv[4], "sleep") == 0;
    const auto network = open(argv[2]);
    const auto sender = connect(*network, parse(argv[3]));
    Buffers buffers(*sender, argv[5]);
    const long messages = atol(argv[6]);
    sendMessages(*network, *sender, buffers, messages / kWarmUp + long(buffers.depth));
    sendMessages(*network, *sender, buffers, messages);
  } else if (is("pong", 4)) {
    pong(*open(argv[2]), atol(argv[3]));
  } else if (is("ping", 5)) {
    ping(*open(argv[2]), parse(argv[3]), atol(argv[4]));
  } else {
    return 2;
  }
  return 0;
}
