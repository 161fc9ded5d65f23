// Runs the blocks of one launch on the calling thread, as a GPU runs them on its SMs: each is written as if it were
// alone and waits where it must; meanwhile the others run.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/fiber.h"
#include "datapath/spin_wait.h"
#include "datapath/telemetry.h"
#include "net/endpoint.h"

namespace ncclrun {

// The slots that a block needs before its next step.
struct Needs {
  std::span<Endpoint* const> receives;
  std::span<Endpoint* const> sends;
  // What these have been given has to be sent.
  std::span<Endpoint* const> unsent = {};

  bool met() const { return missing() == nullptr; }
  // The first endpoint that is not ready.
  Endpoint* missing() const;
};

// Raises the interrupt because an operation needs an endpoint whose peer is gone, with the reason of Endpoint::gone().
void giveUp(const Endpoint& end, const Status& why, Interrupt& interrupt);

class Blocks {
 public:
  struct Body {
    void (*run)(void* argument, Blocks& blocks);
    void* argument;
  };
  Blocks(SpinWait& spin, Telemetry& telemetry) : spin_(spin), telemetry_(telemetry) {}

  // Returns when all have ended. With one body, it runs on the caller's own stack.
  void run(std::span<const Body> bodies);

  // For the running block: waits for its needs. False when the communicator is interrupted.
  bool await(const Needs& needs);

  SpinWait& spin() const { return spin_; }
  Telemetry& telemetry() const { return telemetry_; }

 private:
  struct Running {
    Body body;
    Blocks* blocks;
    std::unique_ptr<Fiber> fiber;
    const Needs* needs = nullptr;  // null: can go on
  };
  void runTogether();
  Running* nextReady();
  // Before the thread sleeps: arranges that the doorbell rings, or ends the wait if no peer will ring it.
  void watch(const Needs& needs) const;
  // Before the thread sleeps: reports the peers that the blocks wait for.
  void fallAsleep() const;

  SpinWait& spin_;
  Telemetry& telemetry_;
  std::vector<Running> running_;
  Running* current_ = nullptr;  // null: a single body on the caller's stack
  size_t lastResumed_ = 0;
};

}  // namespace ncclrun
