// What a connection's other side may send after the handshake: chunks of messages, to a receiver that has posted a few
// receives and a group.
#include <sys/socket.h>

#include <array>
#include <vector>

#include "net/socket/socket_network.h"
#include "net/socket/socket_receiver.h"

using namespace ncclrun;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<net::SocketNetwork> network = [] {
    std::unique_ptr<net::SocketNetwork> made;
    (void)net::SocketNetwork::make({.devices = {{.interface = "lo", .address = "127.0.0.1"}}}, made);
    return made;
  }();
  int ends[2];
  if (network == nullptr || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 0;
  Descriptor sending(ends[0]);
  std::vector<net::AcceptedSocket> sockets(1);
  sockets[0].descriptor.reset(ends[1]);
  std::unique_ptr<net::SocketReceiver> receiver;
  if (!net::SocketReceiver::make(*network, 0, 0, std::move(sockets), receiver).ok()) return 0;
  std::array<std::array<std::byte, 64>, 6> memory;
  std::array<net::Request*, 4> requests = {};
  for (size_t i = 0; i < 3; i++) {
    const net::Buffer buffer{memory[i].data(), memory[i].size(), int(i), {}};
    if (!receiver->irecv({&buffer, 1}, requests[i]).ok()) return 0;
  }
  std::array<net::Buffer, 3> group;
  for (size_t i = 0; i < 3; i++) group[i] = {memory[3 + i].data(), memory[3 + i].size(), int(i), {}};
  if (!receiver->irecv(group, requests[3]).ok()) return 0;
  // Larger than the socket keeps nothing is sent: the fuzzers' inputs are small.
  if (size > 0) (void)send(sending.get(), data, std::min<size_t>(size, 100'000), MSG_NOSIGNAL | MSG_DONTWAIT);
  sending.reset();
  for (net::Request* request : requests) {
    bool done = false;
    std::array<size_t, 8> sizes = {};
    if (!receiver->test(request, done, sizes).ok()) break;
  }
  return 0;
}
