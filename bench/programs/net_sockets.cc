// The socket backend of the network layer alone: messages one way, and a ping-pong of 8 bytes with both ends spinning.
// WAIT: "spin" or "sleep", what the caller does while a request is not complete.
//
//   net_sockets receive ADDRESS WAIT SOCKETS HELPERS BYTES MESSAGES         prints its handle, then MB/s
//   net_sockets send ADDRESS HANDLE WAIT SOCKETS HELPERS BYTES MESSAGES
//   net_sockets pong ADDRESS ROUNDS                                         prints its handle
//   net_sockets ping ADDRESS HANDLE ROUNDS                                  prints microseconds one way
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "base/clock.h"
#include "net/socket/socket_network.h"

using namespace ncclrun;
using namespace ncclrun::net;

namespace {

constexpr size_t kDepth = 8;  // messages under way, each with a buffer of its own; fewer of large ones
constexpr size_t kFootprint = size_t(128) << 20;
constexpr long kWarmUp = 4;   // the part of the messages that goes ahead, and every buffer once, outside the time taken

void must(const Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "net_sockets: %s\n", status.sentence.c_str());
  exit(1);
}

std::unique_ptr<SocketNetwork> open(const char* address, const char* sockets, const char* helpers) {
  std::unique_ptr<SocketNetwork> network;
  must(SocketNetwork::make({.devices = {{.interface = "eth0", .address = address}},
                            .sockets = uint32_t(atoi(sockets)),
                            .helpers = uint32_t(atoi(helpers))},
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

std::unique_ptr<Sender> connect(SocketNetwork& network, const Handle& handle) {
  std::unique_ptr<Connector> connector;
  must(network.connect(0, handle, connector));
  std::unique_ptr<Sender> sender;
  while (sender == nullptr) must(connector->connect(sender));
  return sender;
}

bool sleeps = false;

void wait(SocketNetwork& network, Connection& connection, Request* request) {
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
void stream(SocketNetwork& network, Connection& connection, size_t depth, long messages, Begin&& begin) {
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

// The buffers of the messages under way.
struct Buffers {
  const size_t bytes;  // of one
  const size_t depth;
  std::vector<std::byte> memory;

  explicit Buffers(const char* size)
      : bytes(strtoul(size, nullptr, 10)),
        depth(std::min(kDepth, kFootprint / bytes)),
        memory(bytes * depth, std::byte{1}) {}
  std::byte* at(size_t slot) { return memory.data() + slot * bytes; }
};

void sendMessages(SocketNetwork& network, Sender& sender, Buffers& buffers, long messages) {
  stream(network, sender, buffers.depth, messages, [&](size_t slot, Request*& request) {
    return sender.isend(buffers.at(slot), buffers.bytes, 0, {}, request);
  });
}

void receiveMessages(SocketNetwork& network, Receiver& receiver, Buffers& buffers, long messages) {
  stream(network, receiver, buffers.depth, messages, [&](size_t slot, Request*& request) {
    const Buffer buffer{buffers.at(slot), buffers.bytes, 0, {}};
    return receiver.irecv({&buffer, 1}, request);
  });
}

void receiveOne(SocketNetwork& network, Receiver& receiver, void* data, size_t bytes) {
  const Buffer buffer{data, bytes, 0, {}};
  Request* request = nullptr;
  while (request == nullptr) must(receiver.irecv({&buffer, 1}, request));
  wait(network, receiver, request);
}

void sendOne(SocketNetwork& network, Sender& sender, const void* data, size_t bytes) {
  Request* request = nullptr;
  while (request == nullptr) must(sender.isend(data, bytes, 0, {}, request));
  wait(network, sender, request);
}

}  // namespace

int main(int argc, char** argv) {
  const auto is = [&](const char* name, int words) { return argc == words && strcmp(argv[1], name) == 0; };
  Handle handle = {};
  if (is("receive", 8)) {
    sleeps = strcmp(argv[3], "sleep") == 0;
    const auto network = open(argv[2], argv[4], argv[5]);
    std::unique_ptr<Listener> listener;
    must(network->listen(0, handle, listener));
    print(handle);
    const auto receiver = accept(*listener);
    Buffers buffers(argv[6]);
    const long messages = atol(argv[7]);
    receiveMessages(*network, *receiver, buffers, messages / kWarmUp + long(buffers.depth));
    const uint64_t begin = nowNanoseconds();
    receiveMessages(*network, *receiver, buffers, messages);
    printf("%.1f\n", double(buffers.bytes) * double(messages) / double(nowNanoseconds() - begin) * 1e3);
  } else if (is("send", 9)) {
    sleeps = strcmp(argv[4], "sleep") == 0;
    const auto network = open(argv[2], argv[5], argv[6]);
    const auto sender = connect(*network, parse(argv[3]));
    Buffers buffers(argv[7]);
    const long messages = atol(argv[8]);
    sendMessages(*network, *sender, buffers, messages / kWarmUp + long(buffers.depth));
    sendMessages(*network, *sender, buffers, messages);
  } else if (is("pong", 4)) {
    const auto network = open(argv[2], "1", "0");
    std::unique_ptr<Listener> listener;
    must(network->listen(0, handle, listener));
    print(handle);
    const auto receiver = accept(*listener);
    receiveOne(*network, *receiver, handle.data(), handle.size());
    const auto sender = connect(*network, handle);
    uint64_t data = 0;
    for (long i = 0; i < atol(argv[3]); i++) {
      receiveOne(*network, *receiver, &data, sizeof data);
      sendOne(*network, *sender, &data, sizeof data);
    }
  } else if (is("ping", 5)) {
    const auto network = open(argv[2], "1", "0");
    const auto sender = connect(*network, parse(argv[3]));
    std::unique_ptr<Listener> listener;
    must(network->listen(0, handle, listener));
    sendOne(*network, *sender, handle.data(), handle.size());
    const auto receiver = accept(*listener);
    const long rounds = atol(argv[4]);
    uint64_t data = 0;
    const uint64_t begin = nowNanoseconds();
    for (long i = 0; i < rounds; i++) {
      sendOne(*network, *sender, &data, sizeof data);
      receiveOne(*network, *receiver, &data, sizeof data);
    }
    printf("%.3f\n", double(nowNanoseconds() - begin) / double(rounds) / 2 / 1e3);
  } else {
    return 2;
  }
  return 0;
}
