#include "host/blocks.h"

#include "base/thread_owned.h"

namespace ncclrun {
namespace {

// Not inlined: what runs blocks may go on on another thread (datapath/borrowed_thread.h), with that thread's pool.
[[gnu::noinline]] FiberPool& fiberPool() {
  FiberPool& pool = threadOwned<FiberPool>();
  asm volatile("" ::: "memory");
  return pool;
}

}  // namespace

Endpoint* Needs::missing() const {
  for (Endpoint* end : receives) {
    if (!end->ready()) return end;
  }
  for (Endpoint* end : sends) {
    if (!end->ready()) return end;
  }
  for (Endpoint* end : unsent) {
    if (!end->hasSent()) return end;
  }
  return nullptr;
}

void Blocks::run(std::span<const Body> bodies) {
  if (bodies.size() == 1) {
    bodies[0].run(bodies[0].argument, *this);
    return;
  }
  running_.reserve(bodies.size());
  for (const Body& body : bodies) running_.push_back({body, this, fiberPool().take()});
  for (Running& block : running_) {
    block.fiber->start(
        [](void* argument) {
          auto* self = static_cast<Running*>(argument);
          self->body.run(self->body.argument, *self->blocks);
        },
        &block);
  }
  runTogether();
  for (Running& block : running_) fiberPool().give(std::move(block.fiber));
  running_.clear();
}

// Resumes blocks round-robin; waits when none can continue. An interrupt makes every await() return false, so all
// blocks end.
void Blocks::runTogether() {
  size_t left = running_.size();
  while (left > 0) {
    Running* next = nextReady();
    if (next == nullptr) {
      const bool ready = spin_.wait([&] { return (next = nextReady()) != nullptr; }, [&] { fallAsleep(); });
      if (!ready) {
        for (Running& block : running_) {
          if (!block.fiber->done()) next = &block;
        }
      }
    }
    current_ = next;
    next->fiber->resume();
    current_ = nullptr;
    if (next->fiber->done()) left--;
  }
}

// A peer that left in order breaks a collective for all ranks, which cannot have called the same; whatever else is the
// matter concerns whoever needs the peer.
void giveUp(const Endpoint& end, const Status& why, Interrupt& interrupt) {
  const bool leftInOrder = why.code == ncclInvalidUsage;
  interrupt.raise(why, leftInOrder ? Interrupt::kNobody : end.facts().peer,
                  leftInOrder && end.inCollective() ? FailureScope::all : FailureScope::alone);
}

Blocks::Running* Blocks::nextReady() {
  for (size_t i = 0; i < running_.size(); i++) {
    lastResumed_ = lastResumed_ + 1 < running_.size() ? lastResumed_ + 1 : 0;
    Running& block = running_[lastResumed_];
    if (!block.fiber->done() && (block.needs == nullptr || block.needs->met())) return &block;
  }
  return nullptr;
}

bool Blocks::await(const Needs& needs) {
  if (needs.met()) return !spin_.interrupt().raised();
  if (current_ == nullptr) {
    return spin_.wait([&] { return needs.met(); },
                      [&] {
                        watch(needs);
                        const Endpoint* missing = needs.missing();
                        telemetry_.waiting(missing != nullptr ? missing->facts().peer : ~0u);
                      });
  }
  Running* self = current_;
  self->needs = &needs;
  self->fiber->suspend();
  self->needs = nullptr;
  return !spin_.interrupt().raised();
}

void Blocks::watch(const Needs& needs) const {
  const auto watchUnless = [&](std::span<Endpoint* const> ends, auto&& isReady) {
    for (Endpoint* end : ends) {
      if (isReady(*end)) continue;
      end->watch();
      // Data that arrived before the peer left is visible now.
      if (const Status why = end->gone(); !why.ok() && !isReady(*end)) giveUp(*end, why, spin_.interrupt());
    }
  };
  watchUnless(needs.receives, [](Endpoint& end) { return end.ready(); });
  watchUnless(needs.sends, [](Endpoint& end) { return end.ready(); });
  watchUnless(needs.unsent, [](Endpoint& end) { return end.hasSent(); });
}

void Blocks::fallAsleep() const {
  uint32_t peer = ~0u;
  for (const Running& block : running_) {
    if (block.fiber->done() || block.needs == nullptr) continue;
    watch(*block.needs);
    const Endpoint* missing = block.needs->missing();
    if (missing != nullptr && peer == ~0u) peer = missing->facts().peer;
  }
  telemetry_.waiting(peer);
}

}  // namespace ncclrun
