#include "net/plugin/attempt.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/thread.h"
#include "nccl.h"

namespace ncclrun::net::plugin {
namespace {
constexpr auto kShortestPause = std::chrono::microseconds(50);
constexpr auto kLongestPause = std::chrono::microseconds(1000);
}  // namespace

struct Attempt::State {
  // With the mutex held: the thread makes no call any more.
  void release() {
    if (yield.comm != nullptr && !isTaken) work.close(yield.comm);
    work.call = nullptr;
  }

  Work work;
  std::mutex mutex;
  uint64_t callBegan = 0;  // 0: the thread is in no call
  bool isAbandoned = false;
  bool isOver = false;
  bool isTaken = false;
  Yield yield;
};

Attempt::Attempt(std::shared_ptr<State> state) : state_(std::move(state)) {}

Status Attempt::start(Work work, std::unique_ptr<Attempt>& out) {
  auto state = std::make_shared<State>();
  state->work = std::move(work);
  try {
    startThread("ncclrun-plugin", [state] { run(*state); }).detach();
  } catch (const std::system_error& refused) {
    return {ncclSystemError, state->work.label + ": " + refused.what()};
  }
  out.reset(new Attempt(state));
  return {};
}

void Attempt::run(State& state) {
  for (auto pause = kShortestPause;; pause = std::min(pause * 2, kLongestPause)) {
    {
      std::lock_guard lock(state.mutex);
      if (state.isAbandoned) return;
      state.callBegan = nowNanoseconds();
      state.work.inside->fetch_add(1);
    }
    const Yield yield = state.work.call();
    {
      std::lock_guard lock(state.mutex);
      state.callBegan = 0;
      state.yield = yield;
      state.isOver = yield.code != ncclSuccess || yield.comm != nullptr;
      if (state.isAbandoned) state.release();
      if (state.isOver) state.work.call = nullptr;
      state.work.inside->fetch_sub(1);
      if (state.isAbandoned || state.isOver) return;
    }
    std::this_thread::sleep_for(pause);
  }
}

Attempt::~Attempt() {
  std::lock_guard lock(state_->mutex);
  state_->isAbandoned = true;
  if (state_->callBegan == 0) state_->release();
}

Status Attempt::poll(bool& isOver, Yield& out) {
  std::lock_guard lock(state_->mutex);
  isOver = state_->isOver;
  if (isOver) {
    out = state_->yield;
    state_->isTaken = true;
    return {};
  }
  const uint64_t began = state_->callBegan;
  if (began == 0 || nowNanoseconds() - began < state_->work.timeout) return {};
  return {ncclSystemError, formatSentence("%s: the call has not returned for %u ms", state_->work.label.c_str(),
                                          unsigned(state_->work.timeout / 1'000'000))};
}

}  // namespace ncclrun::net::plugin
