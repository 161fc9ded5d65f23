// Runs the blocks of one launch on the calling thread, as a GPU runs them on its multiprocessors: each is written as if
// it were alone and waits where it must; meanwhile the others go on.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/fiber.h"
#include "datapath/patience.h"
#include "datapath/telemetry.h"
#include "net/endpoint.h"

namespace ncclrun {

// What a block needs before its next step: every one of these slots.
struct Needs {
  std::span<Endpoint* const> receives;
  std::span<Endpoint* const> sends;

  bool met() const { return missing() == nullptr; }
  // The first end that is not ready.
  Endpoint* missing() const;
};

// An operation needs an end whose peer is gone, for the reason that Endpoint::gone() gave.
void giveUp(const Endpoint& end, const Status& why, Interrupt& interrupt);

class Blocks {
 public:
  struct Body {
    void (*run)(void* argument, Blocks& blocks);
    void* argument;
  };
  Blocks(Patience& patience, Telemetry& telemetry) : patience_(patience), telemetry_(telemetry) {}

  // Returns when all have ended. With one body, it runs on the caller's own stack.
  void run(std::span<const Body> bodies);

  // For the running block: waits for its needs. False when the communicator is interrupted.
  bool await(const Needs& needs);

  Patience& patience() const { return patience_; }
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
  // Before the thread sleeps until they are met: sees to it that somebody rings, or ends the wait if nobody will.
  void watch(const Needs& needs) const;
  // Before the thread sleeps: tells whom the blocks wait for.
  void fallAsleep() const;

  Patience& patience_;
  Telemetry& telemetry_;
  std::vector<Running> running_;
  Running* current_ = nullptr;  // null: a single body on the caller's stack
  size_t turn_ = 0;
};

}  // namespace ncclrun
