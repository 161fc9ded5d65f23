// Lets connections in: whoever connects must say a right hello within a few seconds, else it is dropped without a word.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "base/descriptor.h"
#include "net/proxy.h"
#include "net/socket/hello.h"

namespace ncclrun {

class Listener final : public Pollable {
 public:
  // Takes the connection over if it is wanted; what is left in the descriptor afterwards is closed. On the proxy's
  // thread.
  using Admit = std::function<void(const socket::Hello& hello, Descriptor& connection)>;
  // The system has accepted no connection for seconds, because descriptors or memory ran out. On the proxy's thread.
  using Starved = std::function<void(const Status& why)>;

  Listener(std::shared_ptr<Proxy> proxy, Descriptor listening, Admit admit, Starved starved);
  ~Listener() override;
  // Begins to let in.
  Status start();

  void onEvents(uint32_t events) override;

 private:
  class Stranger;
  struct Alarm final : Pollable {
    explicit Alarm(Listener& listener) : listener(listener) {}
    void onEvents(uint32_t) override { listener.onAlarm(); }
    Listener& listener;
  };
  static constexpr size_t kStrangers = 256;  // at a time; the longest waiting one goes first

  void acceptAll();
  void refused(int error);
  void onAlarm();
  void setAlarm();

  const std::shared_ptr<Proxy> proxy_;
  Descriptor listening_;
  // Made before descriptors can run out: it ends strangers' waits, and tries again after an accept that failed.
  Descriptor timer_;
  Alarm alarm_{*this};
  const Admit admit_;
  const Starved starved_;
  std::list<std::unique_ptr<Stranger>> strangers_;  // in the order of their coming
  uint64_t refusedSince_ = 0;                       // nanoseconds; 0: the last accept was not refused
};

}  // namespace ncclrun
