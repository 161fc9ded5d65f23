// The socket backend of the network layer alone: messages one way, and a ping-pong of 8 bytes with both ends spinning.
//
//   net_sockets receive ADDRESS SOCKETS HELPERS BYTES MESSAGES         prints its handle, then MB/s
//   net_sockets send ADDRESS HANDLE SOCKETS HELPERS BYTES MESSAGES
//   net_sockets pong ADDRESS ROUNDS                                    prints its handle
//   net_sockets ping ADDRESS HANDLE ROUNDS                             prints microseconds one way
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

constexpr size_t kDepth = 8;  // messages under way, each with a buffer of its own

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

void wait(Connection& connection, Request* request) {
  for (bool done = false; !done;) must(connection.test(request, done, {}));
}

// Begins transfer after transfer, at most kDepth at a time; `begin` sets the request, or leaves it null for "not now".
template <class Begin>
void stream(Connection& connection, long messages, Begin&& begin) {
  std::deque<Request*> open;
  for (long i = 0; i < messages; i++) {
    if (open.size() == kDepth) {
      wait(connection, open.front());
      open.pop_front();
    }
    Request* request = nullptr;
    while (request == nullptr) must(begin(size_t(i) % kDepth, request));
    open.push_back(request);
  }
  for (Request* request : open) wait(connection, request);
}

void sendMessages(Sender& sender, size_t bytes, long messages) {
  std::vector<std::byte> memory(bytes * kDepth);
  stream(sender, messages, [&](size_t slot, Request*& request) {
    return sender.isend(memory.data() + slot * bytes, bytes, 0, {}, request);
  });
}

void receiveMessages(Receiver& receiver, size_t bytes, long messages) {
  std::vector<std::byte> memory(bytes * kDepth);
  stream(receiver, messages, [&](size_t slot, Request*& request) {
    const Buffer buffer{memory.data() + slot * bytes, bytes, 0, {}};
    return receiver.irecv({&buffer, 1}, request);
  });
}

void receiveOne(Receiver& receiver, void* data, size_t bytes) {
  const Buffer buffer{data, bytes, 0, {}};
  Request* request = nullptr;
  while (request == nullptr) must(receiver.irecv({&buffer, 1}, request));
  wait(receiver, request);
}

void sendOne(Sender& sender, const void* data, size_t bytes) {
  Request* request = nullptr;
  while (request == nullptr) must(sender.isend(data, bytes, 0, {}, request));
  wait(sender, request);
}

}  // namespace

int main(int argc, char** argv) {
  const auto is = [&](const char* name, int words) { return argc == words && strcmp(argv[1], name) == 0; };
  std::unique_ptr<Listener> listener;
  Handle handle = {};
  if (is("receive", 7)) {
    const auto network = open(argv[2], argv[3], argv[4]);
    must(network->listen(0, handle, listener));
    print(handle);
    const auto receiver = accept(*listener);
    const size_t bytes = strtoul(argv[5], nullptr, 10);
    const long messages = atol(argv[6]);
    const uint64_t begin = nowNanoseconds();
    receiveMessages(*receiver, bytes, messages);
    printf("%.1f\n", double(bytes) * double(messages) / double(nowNanoseconds() - begin) * 1e3);
  } else if (is("send", 8)) {
    const auto network = open(argv[2], argv[4], argv[5]);
    const auto sender = connect(*network, parse(argv[3]));
    sendMessages(*sender, strtoul(argv[6], nullptr, 10), atol(argv[7]));
  } else if (is("pong", 4)) {
    const auto network = open(argv[2], "1", "0");
    must(network->listen(0, handle, listener));
    print(handle);
    const auto receiver = accept(*listener);
    receiveOne(*receiver, handle.data(), handle.size());
    const auto sender = connect(*network, handle);
    uint64_t data = 0;
    for (long i = 0; i < atol(argv[3]); i++) {
      receiveOne(*receiver, &data, sizeof data);
      sendOne(*sender, &data, sizeof data);
    }
  } else if (is("ping", 5)) {
    const auto network = open(argv[2], "1", "0");
    const auto sender = connect(*network, parse(argv[3]));
    must(network->listen(0, handle, listener));
    sendOne(*sender, handle.data(), handle.size());
    const auto receiver = accept(*listener);
    const long rounds = atol(argv[4]);
    uint64_t data = 0;
    const uint64_t begin = nowNanoseconds();
    for (long i = 0; i < rounds; i++) {
      sendOne(*sender, &data, sizeof data);
      receiveOne(*receiver, &data, sizeof data);
    }
    printf("%.3f\n", double(nowNanoseconds() - begin) / double(rounds) / 2 / 1e3);
  } else {
    return 2;
  }
  return 0;
}
