#include "net/plugin/attempt.h"

#include "base/clock.h"
#include "nccl.h"
#include "net/plugin/attempt_pool.h"
#include "net/plugin/attempt_state.h"

namespace ncclrun::net::plugin {

Attempt::State::State(Work wanted) : work(std::move(wanted)), since(nowNanoseconds()) {}

void Attempt::State::release() {
  if (yield.comm != nullptr && !isTaken) work.close(yield.comm);
  work.call = nullptr;
}

bool Attempt::State::step() {
  {
    std::lock_guard lock(mutex);
    if (isAbandoned) return true;
    hasBegun = true;
    callBegan = nowNanoseconds();
    work.inside->fetch_add(1);
  }
  const Yield made = work.call();
  std::lock_guard lock(mutex);
  callBegan = 0;
  callEnded = nowNanoseconds();
  yield = made;
  isOver = made.code != ncclSuccess || made.comm != nullptr;
  if (isAbandoned) release();
  if (isOver) work.call = nullptr;
  work.inside->fetch_sub(1);
  return isAbandoned || isOver;
}

Attempt::Attempt(std::shared_ptr<State> state) : state_(std::move(state)) {}

Status Attempt::start(Work work, std::unique_ptr<Attempt>& out) {
  auto state = std::make_shared<State>(std::move(work));
  if (Status status = AttemptPool::of(state->work.kind).add(state); !status.ok()) {
    status.sentence = state->work.label + ": " + status.sentence;
    return status;
  }
  out.reset(new Attempt(state));
  return {};
}

Attempt::~Attempt() {
  std::lock_guard lock(state_->mutex);
  state_->isAbandoned = true;
  if (state_->callBegan == 0) state_->release();
}

Status Attempt::poll(bool& isOver, Yield& out) {
  std::unique_lock lock(state_->mutex);
  isOver = state_->isOver;
  if (isOver) {
    out = state_->yield;
    state_->isTaken = true;
    return {};
  }
  const uint64_t now = nowNanoseconds();
  if (!state_->hasBegun) {
    lock.unlock();
    if (now - state_->since > AttemptPool::kLongCall) AttemptPool::of(state_->work.kind).relieve();
    return {};
  }
  // Between two of its calls the thread may be in one of another attempt.
  const bool isInCall = state_->callBegan != 0;
  if (now - (isInCall ? state_->callBegan : state_->callEnded) < state_->work.timeout) return {};
  return {ncclSystemError, formatSentence("%s: %s has not returned for %u ms", state_->work.label.c_str(),
                                          isInCall ? "the call" : "another call on its thread",
                                          unsigned(state_->work.timeout / 1'000'000))};
}

}  // namespace ncclrun::net::plugin
