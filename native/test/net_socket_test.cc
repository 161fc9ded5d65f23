// The socket backend under the conformance suite: one socket, several, and several moved by threads.
#include "net/conformance.h"
#include "net/socket/socket_network.h"

using namespace ncclrun;

namespace {

std::unique_ptr<net::Network> open(const std::string& interface, const std::string& address, uint32_t count,
                                   uint32_t helpers) {
  net::SocketConfig config{.devices = {{.interface = interface, .address = address}},
                           .token = {1, 2, 3},
                           .sockets = count,
                           .helpers = helpers};
  std::unique_ptr<net::SocketNetwork> made;
  if (!net::SocketNetwork::make(config, made).ok()) return nullptr;
  return made;
}

test::Backend sockets(const std::string& name, const std::string& address, uint32_t count, uint32_t helpers) {
  test::Backend backend{.name = name, .open = [=] { return open("lo", address, count, helpers); }};
  if (address == "127.0.0.1")
    backend.openOnHost = [=](const std::string& own) { return open("eth0", own, count, helpers); };
  return backend;
}

}  // namespace

int main(int argc, char** argv) {
  return test::runConformance({sockets("one socket", "127.0.0.1", 1, 0), sockets("four sockets", "127.0.0.1", 4, 0),
                               sockets("four sockets of two threads", "127.0.0.1", 4, 2), sockets("IPv6", "::1", 1, 0)},
                              argc, argv);
}
