#include "cuda/agreement.h"

#include <sched.h>

#include "base/clock.h"

namespace ncclrun {
namespace {

// A verdict: number of the agreement, number of ranks that have seen `direct`, number that have consented, state.
constexpr uint64_t kStateBits = 2;
constexpr uint64_t kCountBits = 7;
constexpr uint64_t kSeen = 1ull << (kStateBits + kCountBits);  // one rank that has seen it

constexpr uint64_t wordOf(uint64_t number, uint64_t consents, uint64_t state) {
  return number << (kStateBits + 2 * kCountBits) | consents << kStateBits | state;
}
constexpr uint64_t numberOf(uint64_t word) { return word >> (kStateBits + 2 * kCountBits); }
constexpr uint64_t countAt(uint64_t word, uint64_t shift) { return word >> shift & ((1u << kCountBits) - 1); }
constexpr uint64_t consentsOf(uint64_t word) { return countAt(word, kStateBits); }
constexpr uint64_t seenOf(uint64_t word) { return countAt(word, kStateBits + kCountBits); }
constexpr uint64_t stateOf(uint64_t word) { return word & ((1u << kStateBits) - 1); }

constexpr uint32_t kLooksPerYield = 64;

}  // namespace

void Agreement::publish(const BufferLocation* location) {
  if (location == nullptr) return give(State::other, false);
  if (!subject_.ofAll && subject_.own != subject_.to) return;
  recordOf(subject_.own).publish(*location, subject_.number);
}

bool Agreement::allOthers(const std::function<bool(uint32_t local)>& holds) const {
  if (!subject_.ofAll) return subject_.own == subject_.to || holds(subject_.to);
  for (uint32_t local = 0; local < subject_.ranks; local++) {
    if (local != subject_.own && !holds(local)) return false;
  }
  return true;
}

// A later number means that the other ranks went on without this one, thus not directly.
bool Agreement::decided(State& state) {
  const uint64_t word = verdict().load(std::memory_order_acquire);
  if (numberOf(word) < subject_.number) return false;
  state = numberOf(word) > subject_.number ? State::other : State(stateOf(word));
  if (state == State::direct && !seen_) {
    seen_ = true;
    verdict().fetch_add(kSeen, std::memory_order_acq_rel);
  }
  return state != State::open;
}

// Leaves a decided verdict unchanged.
void Agreement::give(State state, bool consents) {
  uint64_t word = verdict().load(std::memory_order_acquire);
  for (;;) {
    if (numberOf(word) > subject_.number) return;
    const bool fresh = numberOf(word) < subject_.number;
    if (!fresh && State(stateOf(word)) != State::open) return;
    // A rank that has not seen the verdict yet is polling in its call: wait for it.
    if (fresh && State(stateOf(word)) == State::direct && seenOf(word) < subject_.ranks) {
      if (!waits(~0ull)) return;
      word = verdict().load(std::memory_order_acquire);
      continue;
    }
    const uint64_t consented = (fresh ? 0 : consentsOf(word)) + (consents ? 1 : 0);
    const State next = consents && consented == subject_.ranks ? State::direct : state;
    if (verdict().compare_exchange_weak(word, wordOf(subject_.number, consented, uint64_t(next)),
                                        std::memory_order_acq_rel))
      return;
  }
}

Agreement::Seen Agreement::look(const Reach& reach) {
  const auto isPublished = [&](uint32_t local) { return recordOf(local).isPublished(subject_.number); };
  if (!allOthers(isPublished)) return Seen::missing;
  const bool reached = allOthers([&](uint32_t local) {
    const BufferLocation location = recordOf(local).read();
    return isPublished(local) &&
           reach(local, location);  // a record that was overwritten meanwhile belongs to a decided agreement
  });
  return reached ? Seen::reached : Seen::never;
}

// One iteration of a wait. Returns false when the deadline has passed.
bool Agreement::waits(uint64_t deadline) {
  pauseBriefly();
  if (++looks_ % kLooksPerYield != 0) return true;
  if (nowNanoseconds() > deadline || interrupt_.raised()) return false;
  sched_yield();
  return true;
}

void Agreement::consent(uint64_t deadline, const Reach& reach) {
  for (State state; !consented_ && !decided(state);) {
    const Seen seen = look(reach);
    if (seen == Seen::never) return give(State::other, false);
    consented_ = seen == Seen::reached;
    if (consented_) return give(State::open, true);
    if (!waits(deadline)) return give(State::other, false);
  }
}

bool Agreement::withdraw() {
  give(State::other, false);
  State state = State::other;
  return !decided(state) || state != State::direct;
}

bool Agreement::settle(uint64_t deadline) {
  State state = State::other;
  while (!decided(state)) {
    if (waits(deadline)) continue;
    give(State::other, false);
    if (interrupt_.raised()) return false;
  }
  return state == State::direct;
}

}  // namespace ncclrun
