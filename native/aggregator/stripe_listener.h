// A member that joins one of the groups of which its group consists: each stripe of the collectives has its own, and
// aggregators of its own as far as there are enough.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "aggregator/frame_reader.h"
#include "aggregator/frame_writer.h"
#include "aggregator/heartbeats.h"
#include "aggregator/join.h"
#include "base/sha256.h"
#include "net/collective_network.h"
#include "net/socket/socket_connector.h"
#include "net/socket/socket_network.h"

namespace ncclrun::aggregator {

// The aggregators of one network, and the sockets to them.
struct Servers {
  std::unique_ptr<net::SocketNetwork> sockets;
  std::vector<net::ListenerAddress> addresses;
  net::Token token;
  uint64_t timeout;  // nanoseconds
  uint32_t fanIn;
  std::unique_ptr<Heartbeats> heartbeats;
};

// How many groups a group of so many members consists of: no more than its calls can be under way.
uint32_t stripesOf(uint32_t members, const Servers& servers);

class StripeListener {
 public:
  // digest: of all members' handles, which chooses the aggregators; it says nothing to whoever lacks the token.
  StripeListener(const Servers& servers, const Sha256Digest& digest, uint32_t stripe, uint32_t rank, uint32_t members);

  // `out` null: not all members have come. Not to be called again once it has set `out` or failed.
  Status connect(std::unique_ptr<net::CollectiveGroup>& out);

 private:
  void introduce(Descriptor socket);
  Status awaitOthers(std::unique_ptr<net::CollectiveGroup>& out);
  Status waits() const;

  const Servers& servers_;
  const uint64_t since_;  // nanoseconds
  std::string server_;    // "the aggregator at 10.0.0.9 port 4000"
  std::vector<std::byte> join_;
  std::unique_ptr<net::SocketConnector> connector_;
  Descriptor socket_;
  FrameReader reader_;
  FrameWriter writer_;
  std::vector<char> sentence_;
};

}  // namespace ncclrun::aggregator
