// The out-of-band connections of one rank: sockets to the peers with which it exchanges data, made when there is
// something to say. They carry the handles of data connections, heartbeats and goodbyes; a peer whose process ends
// closes them, whatever network carries the data. Serves one thread at a time.
#pragma once
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/oob/oob_socket.h"
#include "net/socket/acceptor.h"
#include "net/socket/socket_connector.h"
#include "net/socket/socket_network.h"

namespace ncclrun::net {

class OobNetwork {
 public:
  struct Setup {
    Token token = {};
    uint32_t rank = 0, ranks = 0;
    std::string address;   // of this rank's host
    Descriptor listening;  // invalid: nobody connects to this rank
    // Address and port at which a rank listens.
    std::function<Status(uint32_t rank, Address& out)> addressOf;
    std::string network;              // name of the one that carries the data
    uint64_t timeoutNanoseconds = 0;  // a peer that is silent for so long is lost
  };
  // What has happened.
  struct Event {
    uint32_t peer;
    bool lost;           // the peer is; `why` says how
    OobMessage message;  // else
    std::string why = {};
  };
  static Status make(Setup setup, std::unique_ptr<OobNetwork>& out);
  ~OobNetwork();
  OobNetwork(const OobNetwork&) = delete;
  OobNetwork& operator=(const OobNetwork&) = delete;

  // Readable when advance() has something to do. tick() is due at this interval, too.
  int eventDescriptor() const { return network_->eventDescriptor(); }
  uint64_t tickNanoseconds() const;

  // Queues a message; opens a connection to the peer if there is none.
  void send(uint32_t peer, OobMessage message);
  // Moves what can be moved, of all peers, and adds what has come to `out`. An error concerns all of them.
  Status advance(std::vector<Event>& out);
  // What has come from one peer.
  void receive(uint32_t peer, std::vector<Event>& out);
  // Heartbeats and silence.
  void tick(std::vector<Event>& out);
  // To every peer that a connection has been made with.
  void sendToAll(const OobMessage& message);
  bool hasUnsent() const;

 private:
  struct Peer {
    std::list<OobSocket> sockets;
    std::unique_ptr<SocketConnector> connector;
    uint64_t connectingSince = 0;    // nanoseconds
    std::vector<OobMessage> queued;  // until there is a socket
    bool hasLeft = false;            // said goodbye, or is lost: nothing more is expected
  };

  explicit OobNetwork(Setup setup) : setup_(std::move(setup)) {}
  Status start();
  Status acceptAll();
  // An error: this rank's own system lacks something.
  Status connect(uint32_t rank, Peer& peer, std::vector<Event>& out);
  // What a rank says first on each socket, whoever has opened it.
  OobMessage introduction() const;
  void take(uint32_t rank, Peer& peer, const std::vector<OobMessage>& messages, std::vector<Event>& out);
  void receiveFrom(uint32_t rank, Peer& peer, std::vector<Event>& out);
  // Sends what is queued over the first socket.
  void flush(Peer& peer);
  // Why a peer is lost that has said nothing for the timeout; empty: it is not.
  std::string silenceOf(uint32_t rank, const Peer& peer, uint64_t now) const;
  void lose(uint32_t rank, Peer& peer, const std::string& why, std::vector<Event>& out);

  Setup setup_;
  std::unique_ptr<SocketNetwork> network_;
  std::shared_ptr<Acceptor> acceptor_;
  uint64_t listener_ = 0;
  std::map<uint32_t, Peer> peers_;
  std::list<OobSocket> strangers_;  // that have not introduced themselves yet
  uint64_t lastTick_ = 0;
};

}  // namespace ncclrun::net
