// A stack of its own for a block, so that it can be written in blocking style and still share a thread with others.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

namespace ncclrun {

// Runs a function on its own stack, in turns: resume() runs it until it calls suspend() or returns. One thread at a
// time.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The fiber must not be in the middle of another function.
  void start(void (*function)(void*), void* argument);
  void resume();
  // From inside only: back to who resumed.
  void suspend();
  bool done() const { return function_ == nullptr; }

  // The body of every fiber; public because its entry is C.
  void loop();

 private:
  struct Context;  // machine and sanitizer state
  std::unique_ptr<Context> context_;
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
};

// Fibers that wait for their next use. One per thread.
class FiberPool {
 public:
  std::unique_ptr<Fiber> take();
  void give(std::unique_ptr<Fiber> fiber);

 private:
  static constexpr size_t kKept = 64;
  std::vector<std::unique_ptr<Fiber>> free_;
};

}  // namespace ncclrun
