// Lets connections in: whoever connects must say a right hello within a few seconds, else it is dropped without a word.
#pragma once
#include <functional>
#include <list>
#include <memory>

#include "core/descriptor.h"
#include "core/proxy.h"
#include "transport/socket/hello.h"

namespace ncclrun {

class Listener final : public Pollable {
 public:
  // Takes the connection over if it is wanted; what is left in the descriptor afterwards is closed. On the proxy's
  // thread.
  using Admit = std::function<void(const socket::Hello& hello, Descriptor& connection)>;

  Listener(std::shared_ptr<Proxy> proxy, Descriptor listening, Admit admit);
  ~Listener() override;
  // Begins to let in.
  Status start();

  void onEvents(uint32_t events) override;

 private:
  class Stranger;
  static constexpr size_t kStrangers = 256;  // at a time; the longest waiting one goes first
  static constexpr int kPatienceSeconds = 10;

  const std::shared_ptr<Proxy> proxy_;
  Descriptor listening_;
  const Admit admit_;
  std::list<std::unique_ptr<Stranger>> strangers_;
};

}  // namespace ncclrun
