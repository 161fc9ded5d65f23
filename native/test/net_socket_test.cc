// The socket backend under the conformance suite: one socket, several, and several moved by threads.
#include "net/conformance.h"
#include "net/socket/socket_network.h"

using namespace ncclrun;

namespace {

test::Backend sockets(const std::string& name, const std::string& address, uint32_t count, uint32_t helpers) {
  return {name, [=]() -> std::unique_ptr<net::Network> {
            net::SocketConfig config{.devices = {{.interface = "lo", .address = address}},
                                     .token = {1, 2, 3},
                                     .sockets = count,
                                     .helpers = helpers};
            std::unique_ptr<net::Network> network;
            std::unique_ptr<net::SocketNetwork> made;
            if (net::SocketNetwork::make(config, made).ok()) network = std::move(made);
            return network;
          }};
}

}  // namespace

int main(int argc, char** argv) {
  return test::runConformance({sockets("one socket", "127.0.0.1", 1, 0), sockets("four sockets", "127.0.0.1", 4, 0),
                               sockets("four sockets of two threads", "127.0.0.1", 4, 2), sockets("IPv6", "::1", 1, 0)},
                              argc, argv);
}
