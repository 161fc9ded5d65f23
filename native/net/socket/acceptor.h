// The process's listening socket of one address, shared by every listener on it. A connection first proves that it
// knows the token of the listener that it names; a stranger costs one descriptor for a second.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "net/socket/address.h"
#include "net/socket/wire.h"

namespace ncclrun::net {

// A socket whose other side has proved itself.
struct AcceptedSocket {
  Descriptor descriptor;
  Hello hello;
  std::string peer;  // "10.0.0.2 port 40000"
};

class Acceptor {
 public:
  // That of `device`, listening on a port of its own; made at the first call. Null with the reason in `why`.
  static std::shared_ptr<Acceptor> of(const Address& device, Status& why);
  // One with a socket that listens already.
  static std::shared_ptr<Acceptor> adopt(Descriptor listening, Status& why);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  const Address& address() const { return address_; }
  // Readable when poll() has something to do.
  int eventDescriptor() const { return epoll_.get(); }

  // A new listener; its number. `arrived` is called, on any thread, when a poll for another listener has found a socket
  // for this one.
  uint64_t open(const Token& token, std::function<void()> arrived);
  // The same with a number that both sides know.
  void open(uint64_t listener, const Token& token, std::function<void()> arrived);
  void close(uint64_t listener);
  // Accepts and checks whoever has come, without blocking; moves what has come for `listener` to `out`. An error where
  // the system has accepted nothing for seconds.
  Status poll(uint64_t listener, std::vector<AcceptedSocket>& out);

 private:
  struct Stranger {
    AcceptedSocket socket;
    uint64_t deadline = 0;  // nanoseconds
    Challenge challenge = {};
    Sha256Digest proof = {};
    size_t received = 0;  // bytes of hello, then of proof
    bool challenged = false;
  };
  struct OpenListener {
    Token token;
    std::function<void()> notify;
    std::vector<AcceptedSocket> arrived;
  };
  enum class Outcome { waits, proved, leaves };

  Acceptor() = default;
  Status listenOn(const Address& device);
  Status start();
  void acceptAll(uint64_t now, uint64_t polled);
  void makeRoom(uint64_t now, uint64_t polled);
  Outcome advance(Stranger& stranger);
  void advanceAll(uint64_t now, uint64_t polled);
  bool watch(int descriptor, uint32_t events);
  void setTimer(uint64_t now);

  Address address_;
  Descriptor listening_, epoll_, timer_;
  std::mutex mutex_;
  std::map<uint64_t, OpenListener> listeners_;
  std::list<Stranger> strangers_;  // in the order in which they came
  uint64_t refusedSince_ = 0;      // nanoseconds; 0: the last accept was not refused
  Status starved_;
};

}  // namespace ncclrun::net
